import type { CommandContext, Flow } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'
import { loginPath, settingsPath } from '../machine/paths.ts'
import {
  readSettings,
  settingNames,
  settingValues,
  takes,
  type SettingName,
  type Settings,
} from '../machine/settings.ts'
import { demandNoRun, findLogins } from '../sign-in/login-file.ts'
import { callerOf } from '../sign-in/caller.ts'

interface Setting {
  name: string
  value: string
  /** The file or the variable that says so, or `default`. */
  from: string
}

/** `config list`: the settings in effect, with where each comes from. */
export const configList: Flow = async (context) => {
  const data = await inEffect(context)
  await context.out.result({ object: 'list', data }, { look: 'config list', list: 'data' })
}

/** `config get`: the value alone. */
export const configGet: Flow = async (context) => {
  const name = context.positionals['setting']?.[0] ?? ''
  const all = await inEffect(context)
  const found = all.find((each) => each.name === name)
  if (found === undefined)
    throw usageError(`There is no setting \`${name}\`.`, `There are: ${all.map((each) => each.name).join(', ')}.`)
  if (context.out.isJsonWanted) await context.out.result(found)
  else context.out.exact(found.value)
}

/** `config set`: writes it down for this person on this machine. */
export const configSet: Flow = async ({ env, out, positionals }) => {
  demandNoRun(env)
  const [[given = ''] = [], [value = ''] = []] = [positionals['setting'], positionals['value']]
  const name = settingNames.find((each) => each === given)
  if (name === undefined) throw usageError(`\`${given}\` is not set here.`, elsewhere(given))
  const isBack = value === '' || value === 'default'
  if (!isBack && !takes(name, value))
    throw usageError(
      `${name} takes ${(settingValues[name] ?? ['the name of a program']).join(', ')}, not \`${value.slice(0, 60)}\`.`,
    )
  const { [name]: _, ...others } = await readSettings(env)
  const settings: Settings = isBack ? others : { ...others, [name]: value }
  const path = await settingsPath(env)
  const { writePrivately } = await import('../machine/private-file.ts')
  await writePrivately(path, `${JSON.stringify(settings, null, 2)}\n`)
  const from = isBack ? 'default' : path
  await out.result({ name, value: settings[name] ?? defaults[name], from }, { look: 'config set' })
}

const elsewhere = (name: string): string =>
  ({
    server: 'Type `svc login --server ADDRESS`.',
    workspace: 'Type `svc company use SLUG`.',
  })[name] ?? `There are: ${settingNames.join(', ')}.`

const defaults: Readonly<Record<SettingName, string>> = { color: 'auto', output: 'table', pager: 'less' }

/** The variables that count more than a setting. */
const variables: Readonly<Record<SettingName, readonly string[]>> = {
  color: ['NO_COLOR', 'CLICOLOR_FORCE', 'CLICOLOR'],
  output: [],
  pager: ['SVC_PAGER'],
}

async function inEffect(context: CommandContext): Promise<Setting[]> {
  const { env } = context
  const [settings, path] = [await readSettings(env), await settingsPath(env)]
  const printing = settingNames.map((name): Setting => {
    const variable = variables[name].find((each) => (process.env[each] ?? '') !== '')
    if (variable !== undefined) return { name, value: process.env[variable]!, from: variable }
    const value = settings[name]
    if (value !== undefined) return { name, value, from: path }
    const pager = name === 'pager' ? process.env['PAGER'] : undefined
    return pager === undefined
      ? { name, value: defaults[name], from: 'default' }
      : { name, value: pager, from: 'PAGER' }
  })
  return [...(await ofLogin(context)), ...printing].toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

async function ofLogin({ env }: CommandContext): Promise<Setting[]> {
  if (env.run !== null || env.person !== null) {
    const { server } = await callerOf(env, null)
    return [{ name: 'server', value: server, from: 'SVC_API_URL' }]
  }
  if (env.runId !== null) return []
  const logins = await findLogins(env)
  if (logins === null) return []
  const from = await loginPath(env)
  const workspace = logins.workspace === null ? [] : [{ name: 'workspace', value: logins.workspace.slug, from }]
  return [{ name: 'server', value: logins.server, from }, ...workspace]
}
