import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { sandboxVariable } from '../../../shared/device/sandbox.ts'
import { programUrl } from '../../../shared/lib/program-file.ts'
import { openHostLog } from '../../log/host-log.ts'
import type { Places } from '../../setup/places.ts'
import { hostNodeFlags, type HostPurpose } from '../../run-host/wire/node-flags.ts'

const hostMain = fileURLToPath(programUrl('device-manager/run-host'))

/** What is done to the process of a host before it is connected. */
export type HostProcess = Pick<ChildProcess, 'exitCode' | 'signalCode' | 'kill' | 'once' | 'ref'>

/** A run host that was started, and may not listen yet. */
export interface StartedHost {
  hostId: string
  child: Promise<HostProcess>
}
export type StartHost = (hostId: string, options: HostProcessOptions) => StartedHost

interface HostProcessOptions {
  places: Places
  spoolPages: number
  unsentBytes: number
  purpose: HostPurpose
}

export function startHost(hostId: string, options: HostProcessOptions): StartedHost {
  const child = startHostProcess(hostId, options)
  // Whoever connects to it is told.
  child.catch(() => undefined)
  return { hostId, child }
}

/** Starts the process of a run host; resolves when it runs, which is long before it listens. */
export async function startHostProcess(hostId: string, options: HostProcessOptions): Promise<ChildProcess> {
  const { places, spoolPages, unsentBytes, purpose } = options
  mkdirSync(places.hosts, { recursive: true, mode: 0o700 })
  mkdirSync(places.logs, { recursive: true, mode: 0o700 })
  const flags = ['--state-dir', places.stateDir, '--host-id', hostId, '--purpose', purpose]
  const limits = ['--spool-pages', String(spoolPages), '--unsent-bytes', String(unsentBytes)]
  const out = openHostLog(places.hostLog)
  try {
    // The host has a session of its own, so that the daemon's end, its terminal and its service's signals do not reach it.
    const child = spawn(process.execPath, [...hostNodeFlags, hostMain, ...flags, ...limits], {
      detached: true,
      // The pipe tells the host when this daemon is gone.
      stdio: ['pipe', out, out],
      env: { ...hostEnvironment(), NODE_COMPILE_CACHE: places.compileCache },
      cwd: places.stateDir,
    })
    child.unref()
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.on('error', reject)
    })
    return child
  } finally {
    closeSync(out)
  }
}

/** Returns what a Node needs to start, and nothing of the daemon's own settings. */
function hostEnvironment(): Record<string, string> {
  const kept = [
    'PATH',
    'HOME',
    'USER',
    'LOGNAME',
    'SHELL',
    'LANG',
    'LC_ALL',
    'TZ',
    'TMPDIR',
    'XDG_RUNTIME_DIR',
    // These variables say where svc's own files lie: the rules of permission keep a run out of there.
    'XDG_CONFIG_HOME',
    'XDG_DATA_HOME',
    'SVC_CONFIG_DIR',
    'SVC_DATA_DIR',
    'NODE_EXTRA_CA_CERTS',
    sandboxVariable,
    // A sandbox in a cluster tries its wall by these.
    'KUBERNETES_SERVICE_HOST',
    'KUBERNETES_SERVICE_PORT',
  ]
  return Object.fromEntries(
    kept.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  )
}
