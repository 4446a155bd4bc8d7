import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { ServiceProblem } from '../../shared/device/service.ts'
import { writePrivately } from '../setup/identity-file.ts'
import type { ServiceContext } from './context.ts'

/**
 * Without lingering a systemd of a user ends with the user's last session, and all its services with it. It concerns all of
 * the user's services, so it is only switched off again where it was this program that switched it on: a file says so.
 */
const markerOf = ({ places }: Pick<ServiceContext, 'places'>) => join(places.stateDir, 'enabled-linger')

/** Returns true when it was switched on now. That it is refused keeps nothing from being installed. */
export async function switchLingeringOn(context: ServiceContext): Promise<boolean> {
  if ((await context.manager.lingering()) !== false) return false
  const marker = markerOf(context)
  // Before the act: a crash in between must not leave it on for ever.
  writePrivately(marker, '')
  if (await context.manager.setLingering(true)) return true
  rmSync(marker, { force: true })
  return false
}

export async function switchLingeringBack(context: ServiceContext): Promise<void> {
  const marker = markerOf(context)
  // The folder of another account is not root's to look into.
  if (context.manager.account !== null || !existsSync(marker)) return
  await context.manager.setLingering(false)
  rmSync(marker, { force: true })
}

export function lingeringProblem(lingering: boolean | null): ServiceProblem[] {
  if (lingering !== false) return []
  return [
    {
      code: 'not_lingering',
      message: 'The service ends when you log out, and does not start before you log in.',
      fix: 'sudo loginctl enable-linger "$USER"',
    },
  ]
}
