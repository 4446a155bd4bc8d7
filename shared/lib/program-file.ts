/** The parts whose `main` is started as a program of its own, or as a thread of one. */
export type Program =
  | 'cli'
  | 'control-plane'
  /** A thread. */
  | 'control-plane/costly'
  /** A thread. */
  | 'control-plane/workflows/engine'
  | 'device-manager'
  | 'device-manager/run-host'
  /** git for the repository of a run in a sandbox. */
  | 'device-manager/clone'

/** Files of libraries that a program reads: where they are in a checkout. The build copies them into `assets`. */
export const assets = { 'quickjs.wasm': 'node_modules/quickjs-wasi/quickjs.wasm' } as const
export type Asset = keyof typeof assets

const here = import.meta.url
const isSource = here.endsWith('.ts')
// The module of a build is in a chunk in `chunks/` (scripts/build.ts).
const root = new URL(isSource ? '../../' : '../', here)

/** The `file:` address of the program's `main`: the source in a checkout, the bundle in a build. */
export function programUrl(program: Program): URL {
  return new URL(`${program}/main.${isSource ? 'ts' : 'js'}`, root)
}

/** The `file:` address of a library's file. */
export function assetUrl(asset: Asset): URL {
  return new URL(isSource ? assets[asset] : `assets/${asset}`, root)
}
