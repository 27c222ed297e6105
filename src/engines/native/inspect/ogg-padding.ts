import type { InputAudioTrack } from "mediabunny";
import { unlessUnreadable } from "../../../model/errors.ts";
import { opusRate, opusSamples, vorbisCounterOf } from "../../../remux/audio-files/ogg.ts";
import { mediabunny } from "./local-input.ts";

/** Less than any packet lasts. */
const shortS = 1e-6;

/** Returns how much of the last packet of Opus or Vorbis in an Ogg file is not presented, as its last page says, seconds. */
export async function readOggPadding(track: InputAudioTrack): Promise<number> {
  const counter = await openCounter(track);
  const packets = new mediabunny.EncodedPacketSink(track);
  const last = counter === undefined ? null : await packets.getPacket(Number.POSITIVE_INFINITY);
  if (counter === undefined || last === null) return 0;
  const before = await packets.getPacket(last.timestamp - shortS);
  // How long one of Vorbis lasts depends on the one before.
  let samples = 0;
  for (const packet of [before, last]) if (packet !== null) samples = counter.samplesIn(packet.data);
  return Math.max(0, samples / counter.sampleRate - last.duration);
}

async function openCounter(track: InputAudioTrack) {
  const codec = await track.getCodec();
  if (codec === "opus") return { sampleRate: opusRate, samplesIn: opusSamples };
  const { description } = (await track.getDecoderConfig()) ?? {};
  if (codec !== "vorbis" || !(description instanceof Uint8Array)) return undefined;
  return unlessUnreadable(() => vorbisCounterOf(description));
}
