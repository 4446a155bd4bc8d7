import { rm } from 'node:fs/promises'
import type { CommandContext, Flow } from '../../context/context.ts'
import { ApiFailure, CliError, usageError } from '../../errors/cli-error.ts'
import { parseJsonText } from '../../../shared/lib/lines.ts'
import { fieldAt, listAt, textAt } from '../../replies/fields.ts'
import { readIfThere } from '../../machine/files.ts'
import { createClient } from '../../http/client.ts'
import { loginPath, serverPlaces } from '../../machine/paths.ts'
import { localText } from '../../arguments/values.ts'
import { demandNoRun, useLogin } from '../../sign-in/login-file.ts'
import { serverUrl } from '../../sign-in/server-url.ts'
import { callerWith } from '../../sign-in/caller.ts'

/** `login`: tries the token before it is stored, so that a wrong one is noticed now. */
export const login: Flow = async (context) => {
  const { env, out } = context
  demandNoRun(env)
  const server = await chooseServer(context)
  const token = await chooseToken(context, server)
  const { workspace, role } = await tryToken(context, { server, token })
  const path = await useLogin(env, { server, token, workspace })
  await out.result({ server, workspace, role, file: path }, { look: 'login' })
  out.message(`svc: signed in to ${server}, workspace ${workspace.name}.`)
  if (env.run !== null || env.person !== null)
    out.message('svc: SVC_TOKEN is set here, so commands in this shell go on calling with it.')
}

/** `logout`: the token stays valid elsewhere; only this machine forgets it. */
export const logout: Flow = async ({ env, out }) => {
  demandNoRun(env)
  const path = await loginPath(env)
  const wasThere = readIfThere(path) !== null
  await rm(path, { force: true })
  await out.result({ signedOut: wasThere, file: path }, { look: 'logout' })
  out.message(
    wasThere
      ? 'svc: this machine has forgotten the login. The token itself was not revoked.'
      : 'svc: nobody was signed in.',
  )
}

async function chooseServer({ env, values }: CommandContext): Promise<string> {
  const given = localText(values, 'server')
  if (given !== null) {
    const url = serverUrl(given)
    if (url === null)
      throw usageError(`\`${given}\` is not the address of a server.`, 'For example: https://svc.example.com')
    return url
  }
  const places = await serverPlaces(env)
  const here = localServer(places.server)
  if (here !== null) return here
  throw new CliError('no_server', 'No server was named, and none runs on this machine.', {
    exit: 'usage',
    remediation: `Type \`svc login --server URL --token -\`, or start one here with \`svc-server start\`. (Looked for ${places.server}.)`,
  })
}

function localServer(path: string): string | null {
  const text = readIfThere(path)
  const url = text === null ? null : textAt(parseJsonText(text), 'url')
  return url === null ? null : serverUrl(url)
}

async function chooseToken(context: CommandContext, server: string): Promise<string> {
  const given = localText(context.values, 'token')
  const places = await serverPlaces(context.env)
  const token =
    given === '-'
      ? (await context.readInput()).toString('utf8')
      : given !== null
        ? given
        : ((localServer(places.server) === server ? readIfThere(places.loginToken) : null) ??
          (await tokenByBrowser(context, server)))
  if (token === null) {
    throw usageError(
      'No token was given, and this is not a terminal.',
      `For example: svc login --server ${server} --token - < token.txt`,
    )
  }
  const trimmed = token.trim()
  if (!/^[!-~]{8,4096}$/.test(trimmed))
    throw usageError('This is not a login token: it is not 8 to 4,096 characters without spaces.')
  return trimmed
}

/**
 * On a terminal somebody can open the page; elsewhere this is done only when it is asked for. Otherwise returns null.
 */
async function tokenByBrowser(context: CommandContext, server: string): Promise<string | null> {
  const isBrowserWanted = context.values.local['browser'] === true
  if (!isBrowserWanted && !context.isInteractive) return null
  const { signInByBrowser } = await import('./auth-device.ts')
  return signInByBrowser(context, { server, isBrowserWanted })
}

async function tryToken({ world }: CommandContext, { server, token }: { server: string; token: string }) {
  const client = createClient(callerWith(server, token), world)
  const current = await client.call({ method: 'GET', path: '/api/v1/workspaces' })
  const [id, slug, name] = ['id', 'slug', 'name'].map((key) => textAt(current.body, key))
  if (id == null || slug == null || name == null) {
    throw new CliError('not_our_server', `What answers at ${server} is not a server of svc.`, { exit: 'unreachable' })
  }
  try {
    const { body } = await client.call({ method: 'GET', path: '/api/v1/user/workspaces' })
    const own = listAt(body, 'data').find((item) => fieldAt(item, 'id') === id)
    return { workspace: { id, slug, name }, role: textAt(own, 'role') }
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 403) throw error
    throw new CliError('not_a_login_token', "This is the token of an agent's run, which ends with the run.", {
      exit: 'not_signed_in',
      remediation: 'Sign in with a login token (svc_pat_...).',
    })
  }
}
