/** Types of the platform, such that the published types compile with TypeScript 5.2 to 7, with and without DOM. */

/** A Uint8Array that `fetch` accepts as a body: `Uint8Array<ArrayBuffer>` since TypeScript 5.7, which made it generic. */
export type Bytes = ReturnType<typeof Uint8Array.of>;

/** A CryptoKey. */
export type DeviceKey = typeof globalThis extends { CryptoKey: { prototype: infer Key } } ? Key : object;

/** An AbortSignal. */
export type Signal = typeof globalThis extends { AbortSignal: { prototype: infer Found } }
  ? Found
  : {
      readonly aborted: boolean;
      readonly reason: unknown;
      addEventListener(type: "abort", listener: () => void): void;
      removeEventListener(type: "abort", listener: () => void): void;
    };
