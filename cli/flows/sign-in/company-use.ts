import type { Flow } from '../../context.ts'
import { CliError, usageError } from '../../errors/cli-error.ts'
import { textAt } from '../../replies/fields.ts'
import { failureOf, type Client } from '../../http/client.ts'
import { findLogins, useLogin } from '../../sign-in/login-file.ts'
import { pathSegment } from '../../http/path-segment.ts'

/**
 * `company use`: switches the workspace. A login token works in one workspace only, so this switches to the login that
 * was stored for the other one.
 */
export const companyUse: Flow = async (context) => {
  const { env, out, values } = context
  if (env.run !== null) throw usageError('Within a run the workspace is that of the run.')
  const client = await context.connect()
  const logins = await findLogins(env)
  const slug = values.params['slug']!
  // The stored slugs cover workspaces that the current login may not see.
  const kept = [logins, ...(logins?.others ?? [])].find(
    (login) => login?.server === client.caller.server && login.workspace?.slug === slug,
  )
  // Null: the workspace exists, but the token of the current login is not for it.
  const id = kept?.workspace?.id ?? (await idOf(client, slug))
  const login = [logins, ...(logins?.others ?? [])].find(
    (candidate) => id !== null && candidate?.server === client.caller.server && candidate.workspace?.id === id,
  )
  if (login == null) {
    throw new CliError('no_login_there', `There is no login for the workspace ${slug} on this machine.`, {
      remediation: `A login token works in one workspace only. Sign in with one of ${slug}: svc login --server ${client.caller.server} --token -`,
    })
  }
  await useLogin(env, login)
  await out.result({ server: login.server, workspace: login.workspace })
}

/** A former slug of the workspace leads to its current one. */
async function idOf(client: Client, slug: string, isRenamed = false): Promise<string | null> {
  const reply = await client.send({ method: 'GET', path: `/api/v1/workspaces/by-slug/${pathSegment(slug)}` })
  const now = reply.status === 308 ? textAt(reply.body, 'slug') : null
  if (now !== null && !isRenamed) return idOf(client, now, true)
  if (reply.status === 200) return textAt(reply.body, 'id')
  const failure = failureOf(reply)
  if (failure.code === 'not_permitted') return null
  throw failure
}
