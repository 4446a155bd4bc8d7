import type { CommandContext, Flow } from '../context/context.ts'
import { CliError, usageError } from '../errors/cli-error.ts'
import { pathSegment } from '../http/path-segment.ts'
import { callOf, printReply } from '../http/route-call.ts'
import { fieldAt, listAt, textAt } from '../replies/fields.ts'
import { localText, localTexts } from '../arguments/values.ts'
import type { PermissionList } from '../../shared/api/agent-config.ts'
import { ruleText } from '../../shared/permissions/rule.ts'
import type { ToolRule } from '../../shared/runs/spec.ts'

// The commands that show and change the permission rules of an agent, and say what a change has changed.

/** In the order in which they decide. */
const lists = ['deny', 'ask', 'allow'] as const satisfies readonly PermissionList[]

type Rules = Record<PermissionList, readonly string[]>

/** `agent permissions list`: the mode, the rules, and those that do not do what they seem to say. */
export const permissionsList: Flow = async (context) => {
  const client = await context.connect()
  const ref = agentRef(context)
  const { permissionSettings } = await import('./permission-settings.ts')
  const { body: agent } = await client.call({ method: 'GET', path: `/api/v1/agents/${ref}` })
  const { permissions, modeFrom } = await permissionSettings(client, { agent, ref })
  const { body: audit } = await client.call({ method: 'GET', path: `/api/v1/agents/${ref}/audit` })
  const rules = rulesOf(permissions)
  const { defaultMode: mode } = permissions
  const warnings = warningsOf(audit)
  if (context.out.format === 'json') {
    const shown = { object: 'agent_permissions', agent: textAt(agent, 'handle'), mode, modeFrom, ...rules, warnings }
    await context.out.result(shown)
    return
  }
  const from = { agent: 'its own', workspace: "the workspace's", default: 'nobody set another' }[modeFrom]
  context.out.text([`mode   ${mode} (${from})`, ...linesOf(rules), ...warnings.map(warningLine)].join('\n'))
}

/** `agent permissions add` and `remove`: changes these rules and leaves all others. */
export const permissionsChange: Flow = async (context) => {
  const { command, values } = context
  const isAdding = command.name.endsWith('add')
  const changes = Object.fromEntries(lists.map((list) => [list, localTexts(values, list)]))
  const given = Object.fromEntries(Object.entries(changes).filter(([, rules]) => rules.length > 0))
  if (Object.keys(given).length === 0)
    throw usageError(
      `\`svc ${command.name}\` needs --deny, --ask or --allow with a rule.`,
      `For example: ${command.example}`,
    )
  const client = await context.connect()
  const path = `/api/v1/agents/${agentRef(context)}/config`
  const body = { [isAdding ? 'addRules' : 'removeRules']: given }
  const { body: reply } = await client.call({ method: 'PUT', path, body, isKeyed: true })
  if (!isSettings(reply)) return printReply(context, reply)
  const changed = changesOf(reply)
  const rules = rulesOf(fieldAt(reply, 'config', 'permissions', 'tools'))
  const warnings = warningsOf(reply)
  if (context.out.format === 'json') {
    const agent = `@${textAt(reply, 'slug')}`
    await context.out.result({ object: 'agent_permissions', agent, ...rules, ...changed, warnings })
    return
  }
  context.out.text([...changeLines(changed, lists), ...linesOf(rules), ...warnings.map(warningLine)].join('\n'))
}

/** `agent config set`: prints the settings, and on standard error how the rules have changed and which of them do nothing. */
export const agentConfigSet: Flow = async (context) => {
  const client = await context.connect()
  const { body: reply } = await client.call(callOf(context))
  const touched = lists.filter((list) =>
    context.givenFlags.some((flag) => flag.replace(/^(remove|replace)-/, '') === list),
  )
  if (touched.length > 0 && isSettings(reply)) {
    for (const line of changeLines(changesOf(reply), touched)) context.out.message(`svc: ${line}`)
    for (const warning of warningsOf(reply)) context.out.message(`svc: ${warningLine(warning)}`)
  }
  await printReply(context, reply)
}

function agentRef({ values }: CommandContext): string {
  return pathSegment(localText(values, 'agent') ?? 'me')
}

/** Whether the change was made; an agent's waits for approval. A server of an earlier release ignores single rules. */
function isSettings(reply: unknown): boolean {
  if (fieldAt(reply, 'config') === undefined) return false
  if (fieldAt(reply, 'audit') !== undefined) return true
  throw new CliError(
    'server_too_old',
    'This server is of an earlier release, which changes whole lists of rules only.',
    {
      remediation: 'Upgrade the server, or give the whole list with --replace-deny, --replace-ask and --replace-allow.',
    },
  )
}

function rulesOf(tools: unknown): Rules {
  const textsOf = (list: PermissionList) => listAt(tools, list).map((rule) => ruleText(rule as ToolRule))
  return { deny: textsOf('deny'), ask: textsOf('ask'), allow: textsOf('allow') }
}

interface Change {
  list: PermissionList
  rule: string
}

/** Without a revision nothing has changed. */
function changesOf(reply: unknown): { added: Change[]; removed: Change[] } {
  const [before, after] = ['beforeConfig', 'afterConfig'].map((side) =>
    rulesOf(fieldAt(reply, 'revision', side, 'permissions', 'tools')),
  ) as [Rules, Rules]
  const missing = (from: Rules, others: Rules) =>
    lists.flatMap((list) => from[list].filter((rule) => !others[list].includes(rule)).map((rule) => ({ list, rule })))
  return { added: missing(after, before), removed: missing(before, after) }
}

function changeLines({ added, removed }: { added: Change[]; removed: Change[] }, touched: readonly string[]): string[] {
  const lines = [
    ...removed.map(({ list, rule }) => `removed from the ${list} list: ${rule}`),
    ...added.map(({ list, rule }) => `added to the ${list} list: ${rule}`),
  ]
  return lines.length > 0 || touched.length === 0 ? lines : ['the rules are as they were']
}

const linesOf = (rules: Rules): string[] =>
  lists.flatMap((list) =>
    rules[list].length === 0 ? [`${list.padEnd(6)} -`] : rules[list].map((rule) => `${list.padEnd(6)} ${rule}`),
  )

interface Warning {
  code: string
  message: string
  param: string
}

function warningsOf(reply: unknown): Warning[] {
  return listAt(reply, 'audit').flatMap((each) => {
    const [code, message, param] = ['code', 'message', 'param'].map((field) => textAt(each, field) ?? '') as [
      string,
      string,
      string,
    ]
    return param.startsWith('permissions.tools') ? [{ code, message, param }] : []
  })
}

const warningLine = ({ message }: Warning): string => `warning: ${message}`
