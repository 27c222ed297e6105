import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { describeEngine } from "../contracts/engine.ts";

describeEngine("the native engine", createNativeEngine);
