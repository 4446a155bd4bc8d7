import type { CliEnvironment } from '../machine/environment.ts'
import { CliError } from '../errors/cli-error.ts'
import { parseJsonText } from '../../shared/lib/lines.ts'
import { listAt, textAt } from '../replies/fields.ts'
import { readIfThere } from '../machine/files.ts'
import { loginPath } from '../machine/paths.ts'
import { serverUrl } from './server-url.ts'

/** A login token works in one workspace only, so there may be one login for each. */
export interface Login {
  server: string
  token: string
  workspace: { id: string; slug: string; name: string } | null
}

/** The content of `<config>/login.json`: the login in use, and others that `svc company use` can switch to. */
export interface KeptLogins extends Login {
  others: readonly Login[]
}

/**
 * Returns the logins of this machine, or null. Fails with exit status 4 when the file is damaged or cannot be read, and
 * within a run, which has a token of its own.
 */
export async function findLogins(env: CliEnvironment): Promise<KeptLogins | null> {
  demandNoRun(env)
  const path = await loginPath(env)
  let text: string | null
  try {
    text = readIfThere(path)
  } catch (error) {
    throw unreadable(path, error as Error)
  }
  if (text === null) return null
  const value = parseJsonText(text)
  const login = loginFrom(value)
  if (login === null) throw unreadable(path)
  const others = listAt(value, 'others')
    .map(loginFrom)
    .filter((other) => other !== null)
  return { ...login, others }
}

/** Only a person may sign in and out, in a shell of their own. */
export function demandNoRun(env: CliEnvironment): void {
  if (env.runId === null) return
  throw new CliError(
    'within_run',
    'Within a run svc calls with the token of the run, not with the login of this machine.',
    {
      exit: 'not_signed_in',
      remediation:
        env.run === null
          ? 'SVC_TOKEN is not set here, although SVC_RUN_ID is: leave both as the run has them.'
          : 'Type this in a shell of your own.',
    },
  )
}

const unreadable = (path: string, cause?: Error) =>
  new CliError('login_unreadable', `The login in ${path} cannot be read${cause ? `: ${cause.message}` : ''}.`, {
    exit: 'not_signed_in',
    remediation: cause
      ? 'Let it be read, or name another folder with SVC_CONFIG_DIR.'
      : 'Type `svc login` to sign in again.',
    cause,
  })

/** Makes a login the one in use. Earlier ones are kept, except one of the same workspace. */
export async function useLogin(env: CliEnvironment, login: Login): Promise<string> {
  demandNoRun(env)
  // A damaged file is replaced: signing in again is what was asked for.
  const before = await findLogins(env).catch(() => null)
  const earlier = before === null ? [] : [before, ...before.others]
  const others = earlier.filter((other) => !isSamePlace(other, login)).map(bare)
  const path = await loginPath(env)
  const { writePrivately } = await import('../machine/private-file.ts')
  try {
    await writePrivately(path, `${JSON.stringify({ ...bare(login), others }, null, 2)}\n`)
  } catch (error) {
    throw new CliError('login_not_kept', `The login cannot be kept in ${path}: ${(error as Error).message}.`, {
      remediation: 'Let it be written there, or name another folder with SVC_CONFIG_DIR.',
      cause: error,
    })
  }
  return path
}

const bare = ({ server, token, workspace }: Login): Login => ({ server, token, workspace })
const isSamePlace = (a: Login, b: Login) => a.server === b.server && a.workspace?.id === b.workspace?.id

function loginFrom(value: unknown): Login | null {
  const server = textAt(value, 'server')
  const token = textAt(value, 'token')
  if (server === null || token === null || serverUrl(server) === null) return null
  const [id, slug, name] = ['id', 'slug', 'name'].map((key) => textAt(value, 'workspace', key))
  return { server, token, workspace: id == null || slug == null || name == null ? null : { id, slug, name } }
}
