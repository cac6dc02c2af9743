/** Repeated reports: memoised noise, a lifetime budget, and uploads that survive crashes. */

export { BrowserStore } from "./device/browser_store.js";
export { Device, type DeviceOptions, type FlushResult, type QueueOptions, type QueueResult } from "./device/device.js";
export { importDeviceKey, makeDeviceKey, MemoisingClient } from "./device/memoising.js";
export { MemoryStore } from "./device/memory_store.js";
export { charge, type Debit, type QueuedReport, spentBy, type Store } from "./device/store.js";
export type { DeviceKey } from "./platform.js";
