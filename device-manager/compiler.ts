import { setFlagsFromString } from 'node:v8'

/**
 * The optimizing compilers of V8 take 8 MB of memory with the first function that they are used on, and a daemon's start
 * is enough for that. So they are off until there is work; all that ran before is compiled by them then, as it would have
 * been. (Turning them on and off is a look at a flag when a function has run often; nothing else hangs on it.)
 */
export function compileForMemory(): void {
  for (const name of ['opt', 'maglev']) setFlagsFromString(`--no-${name}`)
}

export function compileForSpeed(): void {
  for (const name of ['opt', 'maglev']) setFlagsFromString(`--${name}`)
}
