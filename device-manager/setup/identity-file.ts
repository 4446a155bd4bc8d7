import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { DeviceRefusal } from '../../shared/device/control.ts'
import { deviceIdentity, type DeviceIdentity } from '../../shared/device/device-identity.ts'
import type { Log } from '../log/log.ts'
import type { Places } from './places.ts'

/** Why the daemon cannot run as it is set up; its text says what to type. */
export class SetupError extends Error {}

export function readIdentity(places: Places): { identity: DeviceIdentity; token: string } {
  const notEnrolled = 'This machine is not connected to a server. Type: svc device connect'
  let identity: unknown
  let token: string
  try {
    identity = JSON.parse(readFileSync(places.identity, 'utf8'))
    token = readFileSync(places.token, 'utf8').trim()
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') throw new SetupError(notEnrolled)
    if (error instanceof SyntaxError) throw damaged(places.identity)
    const message = error instanceof Error ? error.message : String(error)
    throw new SetupError(`The identity of this device cannot be read from ${places.stateDir}: ${message}`)
  }
  const parsed = deviceIdentity.safeParse(identity)
  if (!parsed.success) throw damaged(places.identity)
  if (token === '') throw damaged(places.token)
  return { identity: parsed.data, token }
}

const damaged = (path: string) => new SetupError(`${path} is damaged. Remove it and type: svc device connect`)

/**
 * Keeps the name that the server has for this device, for `svc` while no daemon runs. The file of a device that was disconnected
 * meanwhile, or is another one, stays as it is. What cannot be written is tried again with the next settings.
 */
export function keepDisplayName(places: Places, { deviceId, displayName }: DeviceIdentity, log: Log): void {
  try {
    if (!existsSync(places.identity)) return
    const { identity } = readIdentity(places)
    if (identity.deviceId !== deviceId || identity.displayName === displayName) return
    writePrivately(places.identity, `${JSON.stringify({ ...identity, displayName }, null, 2)}\n`)
  } catch (error) {
    log.warn({ err: error }, 'the name of the device cannot be written')
  }
}

/** Keeps why the server does not take this device any more, for `svc device status` once no daemon runs. */
export function keepRefusal(places: Places, refusal: DeviceRefusal, log: Log): void {
  try {
    writePrivately(places.refused, `${JSON.stringify(refusal)}\n`)
  } catch (error) {
    log.warn({ err: error }, 'the reason of the end cannot be written')
  }
}

/** A daemon that starts asks the server anew. */
export const forgetRefusal = (places: Places): void => rmSync(places.refused, { force: true })

/** Whole or not at all: a crash between leaves the old token, which the server still takes. */
export function replaceToken(places: Places, token: string): void {
  writePrivately(places.token, `${token}\n`)
}

export function writePrivately(path: string, content: string): void {
  const temporary = `${path}.${process.pid}.new`
  try {
    writeFileSync(temporary, content, { mode: 0o600, flush: true })
    renameSync(temporary, path)
  } catch (error) {
    // Half a file takes room on a disk that is full.
    rmSync(temporary, { force: true })
    throw error
  }
}
