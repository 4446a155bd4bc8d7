import { spawn } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { createConnection } from 'node:net'
import { dirname } from 'node:path'
import {
  controlLimits,
  controlReply,
  controlValues,
  type ControlStatus,
  type ControlValue,
} from '../../shared/device/control.ts'
import { daemonPatience } from '../../shared/device/patience.ts'
import { jsonLine, jsonLineReader } from '../../shared/lib/lines.ts'
import type { World } from '../../shared/lib/world.ts'
import { nodeFlags } from './definition.ts'
import { ServiceError } from './service-error.ts'

// The daemon as the service's installer meets it: asks it over its control socket, ends it, starts it by hand.

export interface DaemonPlaces {
  stateDir: string
  daemon: string
  controlSocket: string
  out: string
}

const pollMs = 100
const { stopMs } = daemonPatience

/** null when no daemon answers. */
export async function daemonStatus(places: DaemonPlaces): Promise<ControlStatus | null> {
  return ask(places, 'status')
}

async function ask<O extends 'status' | 'stop'>(places: DaemonPlaces, op: O): Promise<ControlValue<O> | null> {
  const text = await exchange(places.controlSocket, jsonLine({ op }))
  try {
    const reply = controlReply.parse(JSON.parse(text ?? ''))
    return reply.ok ? (controlValues[op].parse(reply.value) as ControlValue<O>) : null
  } catch {
    return null
  }
}

function exchange(path: string, line: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = createConnection(path)
    const read = jsonLineReader(controlLimits.replyBytes)
    let reply: string | null = null
    socket.setTimeout(controlLimits.replyMs, () => socket.destroy())
    socket.on('connect', () => socket.write(line))
    socket.on('data', (chunk: Buffer) => {
      const { lines, isTooLong } = read(chunk)
      reply ??= lines[0] ?? null
      if (isTooLong) socket.destroy()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(reply))
  })
}

/** Ends a daemon that nobody would start again. Its run hosts go on. */
export async function stopDaemon(places: DaemonPlaces, world: World): Promise<void> {
  const stopped = await ask(places, 'stop')
  const giveUpAt = world.monotonic() + stopMs
  while (existsSync(places.daemon)) {
    if (world.monotonic() > giveUpAt) {
      const who = stopped === null ? '' : ` (pid ${stopped.pid})`
      throw new ServiceError(
        'daemon_stays',
        `The device manager that was started by hand${who} does not end.`,
        'End it, then type the command again. See `svc device logs`.',
      )
    }
    await world.sleep(pollMs)
  }
}

/** As `svc device connect` starts it. */
export function startDaemonByHand(
  places: DaemonPlaces,
  program: { node: string; main: string; env: Readonly<Record<string, string | undefined>> },
): void {
  mkdirSync(dirname(places.out), { recursive: true, mode: 0o700 })
  const output = openSync(places.out, 'a', 0o600)
  const child = spawn(program.node, [...nodeFlags, program.main, 'run'], {
    detached: true,
    stdio: ['ignore', output, output],
    env: { ...program.env, SVC_STATE_DIR: places.stateDir },
    cwd: places.stateDir,
  })
  closeSync(output)
  child.on('error', () => undefined)
  child.unref()
}
