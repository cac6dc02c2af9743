/** What only Node has: a device in a directory. */

export { FileStore } from "./device/file_store.js";
