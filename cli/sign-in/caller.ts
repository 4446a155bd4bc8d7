import type { CliEnvironment } from '../machine/environment.ts'
import { CliError } from '../errors/cli-error.ts'
import { serverUrl } from './server-url.ts'

/**
 * Who calls, and where: the run's own token inside a run, else the login kept by `svc login`. Within a run the login of the
 * machine is not looked at, so that nothing a run does is done as the person.
 */
export interface Caller {
  /** Without a slash at its end. */
  server: string
  /** Empty where nobody is signed in yet. */
  token: string
  source: 'run' | 'login'
  /** Sent with each call, when another workspace was named. */
  workspaceId: string | null
  /** The workspace the login is bound to; null: the server knows. */
  ownWorkspaceId: string | null
}

/** Fails with exit status 4 when nobody is signed in. */
export async function callerOf(env: CliEnvironment, workspaceId: string | null): Promise<Caller> {
  if (env.run !== null) {
    const server = env.run.apiUrl === null ? null : serverUrl(env.run.apiUrl)
    if (server === null) {
      throw new CliError('no_server', 'SVC_TOKEN is set, but SVC_API_URL names no server.', {
        exit: 'not_signed_in',
        remediation: 'Set SVC_API_URL to the address of the server, or unset SVC_TOKEN to use your login.',
      })
    }
    return { server, token: env.run.token, source: 'run', workspaceId, ownWorkspaceId: null }
  }
  const login = await kept(env)
  if (login === null) {
    throw new CliError('not_signed_in', 'You are not signed in.', {
      exit: 'not_signed_in',
      remediation: 'Type `svc login --server URL --token -`, or `svc login` alone for a server on this machine.',
    })
  }
  return {
    server: login.server,
    token: login.token,
    source: 'login',
    workspaceId,
    ownWorkspaceId: login.workspace?.id ?? null,
  }
}

/** Loaded where it is needed: a run has its token in the environment. */
async function kept(env: CliEnvironment) {
  return (await import('./login-file.ts')).findLogins(env)
}
