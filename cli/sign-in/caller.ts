import type { Caller } from '../calls/client.ts'
import type { CliEnvironment } from '../machine/environment.ts'
import { CliError } from '../errors/cli-error.ts'
import type { KeptLogins, Login } from './login-file.ts'
import { serverUrl } from './server-url.ts'

/**
 * Returns the run's own token inside a run, else the token in the environment, else the login stored by `svc login`. Within a run the login of the machine is never used, so
 * that nothing a run does is done as the person. `about`: the workspace that the call is about. Fails with exit status 4 when nobody
 * is signed in.
 */
export async function callerOf(
  env: CliEnvironment,
  workspaceId: string | null,
  about: string | null = null,
): Promise<Caller> {
  const given = env.run ?? env.person
  if (given !== null) {
    const server = given.apiUrl === null ? null : serverUrl(given.apiUrl)
    if (server === null) {
      throw new CliError('no_server', 'SVC_TOKEN is set, but SVC_API_URL names no server.', {
        exit: 'not_signed_in',
        remediation: 'Set SVC_API_URL to the address of the server, or unset SVC_TOKEN to use your login.',
      })
    }
    const source = env.run === null ? 'login' : 'run'
    return { server, token: given.token, source, workspaceId, ownWorkspaceId: null }
  }
  // Loaded only here: a run has its token in the environment.
  const logins = await (await import('./login-file.ts')).findLogins(env)
  if (logins === null) {
    throw new CliError('not_signed_in', 'You are not signed in.', {
      exit: 'not_signed_in',
      remediation: 'Type `svc login --server URL --token -`, or `svc login` alone for a server on this machine.',
    })
  }
  const login = loginFor(logins, workspaceId ?? about)
  return {
    server: login.server,
    token: login.token,
    source: 'login',
    workspaceId,
    ownWorkspaceId: login.workspace?.id ?? null,
  }
}

/** A login token works in one workspace only, so the login that was stored for the named one is used. */
function loginFor(logins: KeptLogins, workspaceId: string | null): Login {
  if (workspaceId === null || logins.workspace?.id === workspaceId) return logins
  const stored = logins.others.find(
    ({ server, workspace }) => server === logins.server && workspace?.id === workspaceId.toLowerCase(),
  )
  return stored ?? logins
}

/** A caller with a token that is not, or not yet, in the login file: of a device, or of nobody while it is empty. */
export const callerWith = (server: string, token: string): Caller => ({
  server,
  token,
  source: 'login',
  workspaceId: null,
  ownWorkspaceId: null,
})
