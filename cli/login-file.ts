import type { CliEnvironment } from './environment.ts'
import { CliError } from './errors.ts'
import { fieldAt, parseJsonText, textAt } from './fields.ts'
import { readIfThere } from './files.ts'
import { loginPath } from './paths.ts'
import { serverUrl } from './session.ts'

/** What `<config>/login.json` holds. */
export interface Login {
  server: string
  token: string
  workspace: { id: string; slug: string; name: string } | null
}

/** The login of this machine, or null. Fails with exit status 4 when the file is damaged. */
export async function findLogin(env: CliEnvironment): Promise<Login | null> {
  const path = await loginPath(env)
  const text = readIfThere(path)
  if (text === null) return null
  const value = parseJsonText(text)
  const server = textAt(value, 'server')
  const token = textAt(value, 'token')
  if (server === null || token === null || serverUrl(server) === null) {
    throw new CliError('login_unreadable', `The login in ${path} cannot be read.`, {
      exit: 'not_signed_in',
      remediation: 'Type `svc login` to sign in again.',
    })
  }
  const [id, slug, name] = ['id', 'slug', 'name'].map((key) => textAt(value, 'workspace', key) ?? '')
  const hasWorkspace = fieldAt(value, 'workspace') != null
  return { server, token, workspace: hasWorkspace ? { id: id!, slug: slug!, name: name! } : null }
}
