/** Reporting again and again: noise that is drawn once, a budget for a lifetime, and uploads that survive crashes. */

export { BrowserStore } from "./longitudinal/browser_store.js";
export { Device, type DeviceOptions, type Flushed, type Queued, type QueueOptions } from "./longitudinal/device.js";
export { importDeviceKey, makeDeviceKey, MemoisingClient } from "./longitudinal/memoising.js";
export { MemoryStore } from "./longitudinal/memory_store.js";
export { charge, type Debit, spentBy, type Store, type Waiting } from "./longitudinal/store.js";
