/** CRC-32 as in zlib, PNG and gzip. */

const TABLE = new Int32Array(256);

for (let byte = 0; byte < 256; byte++) {
  let rest = byte;
  for (let bit = 0; bit < 8; bit++) rest = (rest >>> 1) ^ (rest & 1 ? 0xedb88320 : 0);
  TABLE[byte] = rest;
}

/** The checksum of bytes, as an unsigned integer. */
export function crc32(bytes: Uint8Array): number {
  let rest = -1;
  for (let i = 0; i < bytes.length; i++) rest = (rest >>> 8) ^ TABLE[(rest ^ bytes[i]) & 255];
  return ~rest >>> 0;
}
