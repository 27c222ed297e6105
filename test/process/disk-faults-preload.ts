// The processes that read pages are started with the same flags, but have no folder to work in.
if (process.env["DISK_FAULTS"] !== undefined) await import("./disk-faults-hooks.ts");
