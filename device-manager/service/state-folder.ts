import { mkdirSync } from 'node:fs'
import { z } from 'zod'
import type { World } from '../../shared/lib/world.ts'
import { readIdentity, SetupError } from '../setup/identity-file.ts'
import type { Places } from '../setup/places.ts'
import { daemonStatus, startDaemonByHand, stopDaemon } from './daemon-client.ts'
import { forgetStarts, recentStarts } from './restart-pace.ts'

/** What the state folder of a device says, and its daemon. */
export const stateLook = z.object({
  /** Why this is no device; null: it is one. */
  identityTrouble: z.string().nullable(),
  /** The daemon that answers, whoever started it. */
  daemon: z
    .object({
      pid: z.number().int().positive(),
      link: z.string().max(64),
      runIds: z.array(z.string().max(100)).max(10_000),
    })
    .nullable(),
  /** Starts by a service that did not end in order (restart-pace.ts), within the last hour. */
  starts: z.number().int().min(0),
})
export type StateLook = z.infer<typeof stateLook>

/**
 * The state folder of a device, as the actions on its service use it. Root never opens that of another account by itself: whoever has the account
 * could put a link there (account-folder.ts).
 */
export interface ServiceStateFolder {
  look(): Promise<StateLook>
  makeLogs(): Promise<void>
  /** A person starts the service, so earlier crashes count no more. */
  forgetStarts(): Promise<void>
  /** Ends a daemon that nobody would start again. Its run hosts go on. */
  stopDaemon(): Promise<void>
  startDaemonByHand(): Promise<void>
}

export const stateFolderParts = [
  'look',
  'makeLogs',
  'forgetStarts',
  'stopDaemon',
  'startDaemonByHand',
] as const satisfies readonly (keyof ServiceStateFolder)[]
export type StateFolderPart = (typeof stateFolderParts)[number]

interface OwnFolder {
  places: Places
  world: World
  program: { node: string; main: string }
  env: Readonly<Record<string, string | undefined>>
}

/** That of the account of this process. */
export function ownStateFolder({ places, world, program, env }: OwnFolder): ServiceStateFolder {
  return {
    async look() {
      const daemon = await daemonStatus(places)
      return {
        identityTrouble: identityTrouble(places),
        daemon:
          daemon === null
            ? null
            : { pid: daemon.pid, link: daemon.link.state, runIds: daemon.runs.map(({ runId }) => runId) },
        starts: recentStarts(places.starts, world.now()).length,
      }
    },
    makeLogs: async () => void mkdirSync(places.logs, { recursive: true, mode: 0o700 }),
    forgetStarts: async () => forgetStarts(places.starts),
    stopDaemon: () => stopDaemon(places, world),
    startDaemonByHand: async () => startDaemonByHand(places, { ...program, env }),
  }
}

function identityTrouble(places: Places): string | null {
  try {
    readIdentity(places)
    return null
  } catch (error) {
    if (error instanceof SetupError) return error.message
    throw error
  }
}
