/** Reporting again and again: noise that is drawn once, a budget for a lifetime, and uploads that survive crashes. */

export { BrowserStore } from "./device/browser_store.js";
export { Device, type DeviceOptions, type Flushed, type Queued, type QueueOptions } from "./device/device.js";
export { importDeviceKey, makeDeviceKey, MemoisingClient } from "./device/memoising.js";
export { MemoryStore } from "./device/memory_store.js";
export { charge, type Debit, spentBy, type Store, type Waiting } from "./device/store.js";
