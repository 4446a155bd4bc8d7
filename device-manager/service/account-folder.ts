import { statSync } from 'node:fs'
import { z } from 'zod'
import { shellOf, type ServiceAccount } from './account.ts'
import { nodeFlags } from './definition.ts'
import { ServiceError } from './service-error.ts'
import { stateLook, type ServiceStateFolder, type StateFolderPart } from './state-folder.ts'

export interface AccountFolder {
  account: ServiceAccount
  stateDir: string
  program: { node: string; main: string }
}

/** Ending a daemon takes up to half a minute. */
const limitMs = 60_000
const maxOutputBytes = 1024 * 1024

const reply = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), value: z.unknown() }),
  z.object({ ok: z.literal(false), error: z.object({ message: z.string(), remediation: z.string() }) }),
])

/**
 * The state folder of another account, opened by processes of that account (`svc-device service part`): what they read, write and answer is
 * no more than the account can do. It also shows that the account can start the programs.
 */
export function accountStateFolder(folder: AccountFolder): ServiceStateFolder {
  const part = (name: StateFolderPart) => ask(folder, name)
  const act = (name: StateFolderPart) => async () => void (await part(name))
  return {
    look: async () => {
      const look = stateLook.safeParse(await part('look'))
      if (look.success) return look.data
      throw unusable(folder, 'it gave an answer that cannot be read')
    },
    makeLogs: act('makeLogs'),
    forgetStarts: act('forgetStarts'),
    stopDaemon: act('stopDaemon'),
    startDaemonByHand: act('startDaemonByHand'),
  }
}

async function ask(folder: AccountFolder, part: StateFolderPart): Promise<unknown> {
  const { account, stateDir, program } = folder
  const { execa } = await import('execa')
  const line = [program.node, ...nodeFlags, program.main, 'service', 'part', part]
  const [file, ...words] = process.getuid?.() === 0 ? [...becoming(account), ...line] : line
  const ended = await execa(file!, words, {
    cwd: '/',
    env: {
      PATH: '/usr/local/bin:/usr/bin:/bin',
      HOME: account.homeDir,
      USER: account.name,
      LOGNAME: account.name,
      SHELL: shellOf(account),
      SVC_STATE_DIR: stateDir,
    },
    extendEnv: false,
    // A session of its own: a process of the account may trace this one, and by root's terminal it could type for root.
    detached: true,
    stdin: 'ignore',
    timeout: limitMs,
    maxBuffer: maxOutputBytes,
    reject: false,
    cleanup: false,
  })
  const parsed = reply.safeParse(jsonIn(ended.stdout ?? ''))
  if (!parsed.success) throw unusable(folder, (ended.stderr || ended.shortMessage || '').slice(0, 1_000))
  if (parsed.data.ok) return parsed.data.value
  const { message, remediation } = parsed.data.error
  throw new ServiceError('failed', message.slice(0, 4_000), remediation.slice(0, 1_000))
}

/** With all groups of the account, which what it starts keeps: node's own `uid` and `gid` would leave it without them. */
const becoming = ({ uid, gid }: ServiceAccount): string[] => [
  'setpriv',
  `--reuid=${uid}`,
  `--regid=${gid}`,
  '--init-groups',
  '--',
]

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const unusable = ({ account, program }: AccountFolder, said: string) =>
  new ServiceError(
    'unusable_path',
    `The account ${account.name} cannot start ${program.main} by ${program.node}: ${said}`,
    'Put svc and its Node where all may read them, such as /opt/svc (docs/install.md).',
  )

/** Fails where the folder is another account's: its device would be run by somebody who may not read it. */
export function refuseFolderOfOthers({ name, uid }: ServiceAccount, stateDir: string): void {
  const owner = statSync(stateDir, { throwIfNoEntry: false })?.uid
  if (owner === undefined || owner === uid) return
  throw new ServiceError(
    'other_state_dir',
    `${stateDir} belongs to another account (${owner}) than ${name} (${uid}).`,
    `Leave SVC_STATE_DIR out, or name the account whose device it is.`,
  )
}
