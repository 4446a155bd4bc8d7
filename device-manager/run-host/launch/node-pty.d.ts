/**
 * The part of node-pty that is used. It is installed as an alias of @lydell/node-pty (prebuilt), whose own types declare the
 * module under that other name.
 */
declare module 'node-pty' {
  export interface IPty {
    readonly pid: number
    /** Path of the terminal's other end. */
    readonly ptsName: string
    /** Chunks are bytes, since `encoding` is null. */
    onData(listener: (chunk: Uint8Array) => void): void
    /** Calls the listener after the last byte. `signal` is a number; 0 or undefined: none. */
    onExit(listener: (exit: { exitCode: number; signal?: number }) => void): void
    write(text: string): void
  }
  export interface PtyOptions {
    name: string
    cols: number
    rows: number
    cwd: string
    env: Record<string, string>
    encoding: null
  }
  export function spawn(file: string, args: string[], options: PtyOptions): IPty
}
