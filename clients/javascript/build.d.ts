/** The size in bytes of a program that imports only these entries, minified and gzipped. */
export function gzippedSize(...entries: string[]): Promise<number>;
