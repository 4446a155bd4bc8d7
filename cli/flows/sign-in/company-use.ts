import type { Flow } from '../../context/context.ts'
import { ApiFailure, CliError, usageError } from '../../errors/cli-error.ts'
import { textAt } from '../../replies/fields.ts'
import type { Client } from '../../calls/client.ts'
import { createClient, failureOf } from '../../http/client.ts'
import { callerWith } from '../../sign-in/caller.ts'
import { findLogins, useLogin, type Login } from '../../sign-in/login-file.ts'
import { pathSegment } from '../../http/path-segment.ts'

/**
 * `company use`: switches the workspace. A login token works in one workspace only, so this switches to the login that
 * was stored for the other one.
 */
export const companyUse: Flow = async (context) => {
  const { env, out, values, world } = context
  if (env.run !== null) throw usageError('Within a run the workspace is that of the run.')
  const client = await context.connect()
  const { server, token } = client.caller
  const current = await findLogins(env)
  const logins = [current, ...(current?.others ?? [])].filter((login) => login?.server === server).filter(isThere)
  const slug = values.params['slug']!
  const others = logins.filter((kept) => kept.token !== token)
  const clients = [client, ...others.map((kept) => createClient(callerWith(server, kept.token), world))]
  const login =
    logins.find(({ workspace }) => workspace?.slug === slug) ?? (await findRenamed(logins, { slug, clients }))
  if (login === null) {
    throw new CliError('no_login_there', `There is no login for the workspace ${slug} on this machine.`, {
      remediation: `A login token works in one workspace only. Sign in with one of ${slug}: svc login --server ${server} --token -`,
    })
  }
  await useLogin(env, login)
  await out.result({ server: login.server, workspace: login.workspace }, { look: 'company use' })
}

const isThere = (login: Login | null): login is Login => login !== null

/**
 * Returns the login of a workspace that has another slug than when the login was stored. Each login is asked what the slug names:
 * the one in use may be for another workspace, or dead. Fails with what the last one was told where none knows the slug.
 */
async function findRenamed(
  logins: readonly Login[],
  { slug, clients }: { slug: string; clients: readonly Client[] },
): Promise<Login | null> {
  let failure: unknown = null
  for (const client of clients) {
    try {
      const id = await idOf(client, slug)
      // Null: the workspace exists, but this token is not for it.
      const found = id === null ? undefined : logins.find(({ workspace }) => workspace?.id === id)
      if (id !== null) return found ?? null
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      failure ??= error
    }
  }
  if (failure !== null) throw failure
  return null
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
