/** The part of the standard that the engine uses; Node's types leave it to those of browsers. */
declare namespace WebAssembly {
  interface Module {
    readonly [Symbol.toStringTag]: string
  }
  interface Memory {
    readonly buffer: ArrayBuffer
  }
}
declare const WebAssembly: {
  readonly Module: new (bytes: NodeJS.ArrayBufferView) => WebAssembly.Module
}
