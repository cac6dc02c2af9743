/** The bytes of a program that imports these entries and nothing else, minified and gzipped. */
export function gzippedSize(...entries: string[]): Promise<number>;
