import { pathToFileURL } from 'node:url'
import { join } from 'node:path'

const preload = pathToFileURL(join(import.meta.dirname, 'many-processors.mjs')).href

/**
 * The environment of a daemon that finds many processors. With few of them it starts the run host that stands by once one of
 * them is idle, which beside other tests is after 12 s.
 */
export const manyProcessors = { NODE_OPTIONS: `--import=${preload}` }
