import { join } from 'node:path'
import { stateFiles } from '../../shared/lib/places.ts'

/** Returns where the device manager keeps things, under its state folder; all of it is this user's alone. */
export function placesIn(stateDir: string) {
  return {
    stateDir,
    /** publicId, deviceId, displayName, server. */
    identity: join(stateDir, 'identity.json'),
    token: join(stateDir, 'device-token'),
    /** The daemon that runs now: pid, start time, version. Removed at its exit. */
    daemon: join(stateDir, 'daemon.json'),
    refused: join(stateDir, stateFiles.refused),
    /** Held while `daemon.json` is looked at and written. */
    lock: join(stateDir, 'daemon.lock'),
    controlSocket: join(stateDir, 'daemon.sock'),
    journal: join(stateDir, 'journal.db'),
    /** The owner's choices for this device alone (isolation/setting.ts). */
    settings: join(stateDir, 'settings.json'),
    spool: join(stateDir, 'spool.db'),
    hosts: join(stateDir, 'hosts'),
    bin: join(stateDir, 'bin'),
    /** The files of skills of the workspace (skills/bundle-cache.ts). */
    skills: join(stateDir, 'skills'),
    /** Node's cache of compiled sources, for programs that are started often. */
    compileCache: join(stateDir, 'compile-cache'),
    logs: join(stateDir, 'logs'),
    log: join(stateDir, 'logs', 'daemon.log'),
    /** The daemon's output, where no journal takes it. */
    out: join(stateDir, 'logs', 'daemon.out'),
    /** Starts under a service that did not end in order (service/restart-pace.ts). */
    starts: join(stateDir, 'starts.json'),
    hostLog: join(stateDir, 'logs', 'run-hosts.log'),
  }
}
export type Places = ReturnType<typeof placesIn>
