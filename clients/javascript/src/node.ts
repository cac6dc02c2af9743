/** For Node only: a device in a directory. */

export { FileStore } from "./device/file_store.js";
