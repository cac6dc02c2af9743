/** What only Node has: a device in a directory. */

export { FileStore } from "./longitudinal/file_store.js";
