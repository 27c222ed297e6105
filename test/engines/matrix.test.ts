import { createNativeEngine } from "../../src/engines/native.ts";
import { describeEngine } from "../contracts/engine.ts";

describeEngine("the native engine", createNativeEngine);
