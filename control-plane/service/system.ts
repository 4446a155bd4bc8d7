import { execFile } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { dataFiles } from '../../shared/lib/places.ts'
import { shownProperties, stateFromSystemctl, type UnitState } from '../../shared/lib/unit-words.ts'
import { OperatorError } from '../operator/people.ts'
import { makeFolder } from '../process/make-folder.ts'
import { serverLabel } from './server-plist.ts'
import { unitName } from './server-unit.ts'

/** Where a service has its files, and how its systemd is asked. */
export interface ServicePlaces {
  /** Of the whole machine; else of the person who types the command. */
  isOfSystem: boolean
  unitFile: string
  environmentFile: string
  dataDir: string
  /** Says which account is made; null: accounts are not made here. */
  accountFile: string | null
}

export type RunTool = (
  name: string,
  args: readonly string[],
) => Promise<{ status: number | null; stdout: string; said: string }>

/** `root`: another folder than `/` in tests. */
export function servicePlaces({
  isOfSystem,
  home,
  dataDir,
  platform = 'linux',
  root = '',
}: {
  isOfSystem: boolean
  home: string
  dataDir: string
  platform?: string
  root?: string
}): ServicePlaces {
  if (isOfSystem)
    return {
      isOfSystem,
      unitFile: `${root}/etc/systemd/system/${unitName}`,
      environmentFile: `${root}/etc/svc/server.env`,
      dataDir: `${root}/var/lib/svc`,
      accountFile: `${root}/etc/sysusers.d/svc-server.conf`,
    }
  return {
    isOfSystem,
    unitFile:
      platform === 'darwin'
        ? join(home, 'Library/LaunchAgents', `${serverLabel}.plist`)
        : join(home, '.config/systemd/user', unitName),
    environmentFile: join(home, '.config/svc/server.env'),
    dataDir,
    accountFile: null,
  }
}

const limitMs = 120_000

/** Runs a program of systemd. Never fails by itself: the caller knows what a status means. */
export const runTool: RunTool = (name, args) =>
  new Promise((resolve) => {
    const env = { ...process.env, LC_ALL: 'C', SYSTEMD_COLORS: '0', SYSTEMD_PAGER: '' }
    execFile(name, args, { env, timeout: limitMs, encoding: 'utf8' }, (error, stdout, stderr) => {
      const status = error === null ? 0 : typeof error.code === 'number' ? error.code : null
      resolve({ status, stdout, said: (stderr.trim() || error?.message || '').slice(-2_000) })
    })
  })

/** What keeps the server running: systemd or launchd. */
export interface ServiceKeeper {
  /** What a person types to see what the server says. */
  readonly output: string
  reach(): Promise<void>
  /** Starts what the file says, and with each start of the machine or login. `isChanged`: another file than the one before. */
  begin(of: { isChanged: boolean }): Promise<void>
  /** Ends it, so that it is not started again. */
  end(): Promise<void>
  /** Once its file is gone. */
  forget(): Promise<void>
  state(): Promise<UnitState>
}

/** systemctl of the machine or of the person. */
export class Systemctl implements ServiceKeeper {
  readonly output: string
  private readonly run: RunTool
  private readonly scope: readonly string[]

  constructor(run: RunTool, { isOfSystem }: Pick<ServicePlaces, 'isOfSystem'>) {
    this.run = run
    this.scope = isOfSystem ? [] : ['--user']
    this.output = `journalctl ${isOfSystem ? '' : '--user '}-u svc-server -n 20`
  }

  async reach(): Promise<void> {
    const { status, said } = await this.run('systemctl', [...this.scope, 'show-environment'])
    if (status === 0) return
    throw new OperatorError(
      `There is no systemd that could keep the server running (systemctl ${[...this.scope, 'show-environment'].join(' ')}: ${said}). ` +
        'Let a supervisor of your own keep `svc-server start` running, which must not start it again after status 78.',
    )
  }

  async begin({ isChanged }: { isChanged: boolean }): Promise<void> {
    await this.must('daemon-reload')
    await this.must('enable', 'svc-server')
    await this.must(isChanged ? 'restart' : 'start', 'svc-server')
  }

  end(): Promise<void> {
    return this.must('disable', '--now', 'svc-server')
  }

  async forget(): Promise<void> {
    await this.must('daemon-reload')
    // One that failed is remembered although its file is gone. There may be none.
    await this.run('systemctl', [...this.scope, 'reset-failed', 'svc-server'])
  }

  private async must(...args: string[]): Promise<void> {
    const { status, said } = await this.run('systemctl', [...this.scope, ...args])
    if (status !== 0) throw new OperatorError(`\`systemctl ${[...this.scope, ...args].join(' ')}\` failed: ${said}`)
  }

  async state(): Promise<UnitState> {
    const { stdout } = await this.run('systemctl', [...this.scope, 'show', unitName, shownProperties])
    return stateFromSystemctl(stdout)
  }
}

export function textIn(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** A reader finds the whole text or the one before. */
export function replaceServiceFile(path: string, text: string, mode: number): void {
  makeOpenFolder(dirname(path))
  const draft = `${path}.${process.pid}.new`
  try {
    writeFileSync(draft, text, { flush: true })
    chmodSync(draft, mode)
    renameSync(draft, path)
  } catch (error) {
    rmSync(draft, { force: true })
    throw new OperatorError(`${path} cannot be written: ${(error as Error).message}`)
  }
}

/** systemd looks into them, as whoever it is. */
function makeOpenFolder(path: string): void {
  if (existsSync(path)) return
  makeFolder(path)
  chmodSync(path, 0o755)
}

/** The first folder or file on the way to this one that others may not enter or read; null: all may. */
export function closedOnTheWayTo(path: string): string | null {
  const real = realpathSync(path)
  if ((statSync(real).mode & 0o004) === 0) return real
  for (let at = dirname(real); at !== dirname(at); at = dirname(at)) if ((lstatSync(at).mode & 0o001) === 0) return at
  return null
}

const record = z.object({ url: z.string(), pid: z.number() })

/** The address of the server that this process is; null: it does not listen yet. */
export function listeningAddress(dataDir: string, pid: number | null): string | null {
  const text = textIn(join(dataDir, dataFiles.server))
  if (text === null || pid === null) return null
  const parsed = record.safeParse(JSON.parse(text))
  return parsed.success && parsed.data.pid === pid ? parsed.data.url : null
}
