/** The parts whose `main` is started as a program of its own; `control-plane/costly` is started as a thread. */
export type Program = 'cli' | 'control-plane' | 'control-plane/costly' | 'device-manager' | 'device-manager/run-host'

const here = import.meta.url
const isSource = here.endsWith('.ts')
// In a build this module is in a chunk in `chunks/` (scripts/build.ts).
const root = new URL(isSource ? '../../' : '../', here)

/** The `file:` address of the program's `main`: the source in a checkout, the bundle in a build. */
export function programUrl(program: Program): URL {
  return new URL(`${program}/main.${isSource ? 'ts' : 'js'}`, root)
}
