import type { Flow } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'

/** The settings by which a harness finds the API as an MCP server, as each harness writes them. */
interface Place {
  url: string
  /** null: the harness reads it from `variable`. */
  token: string | null
}

const variable = 'SVC_TOKEN'

const json = (value: unknown): string => JSON.stringify(value, null, 2)

/** `reference`: how the harness writes a variable in a text. */
const bearer = ({ token }: Place, reference: string) => ({ Authorization: `Bearer ${token ?? reference}` })

const writers: Readonly<Record<string, (place: Place) => string>> = {
  claude: (place) =>
    json({ mcpServers: { svc: { type: 'http', url: place.url, headers: bearer(place, `\${${variable}}`) } } }),
  codex: ({ url, token }) =>
    [
      '[mcp_servers.svc]',
      `url = ${JSON.stringify(url)}`,
      token === null
        ? `bearer_token_env_var = ${JSON.stringify(variable)}`
        : `http_headers = { Authorization = ${JSON.stringify(`Bearer ${token}`)} }`,
    ].join('\n'),
  cursor: (place) => json({ mcpServers: { svc: { url: place.url, headers: bearer(place, `\${env:${variable}}`) } } }),
  opencode: (place) =>
    json({ mcp: { svc: { type: 'remote', url: place.url, headers: bearer(place, `{env:${variable}}`) } } }),
}

/** `mcp config`: the agent of a run has the API by `svc`, and its token ends with the run. */
export const mcpConfig: Flow = async (context) => {
  const { out, positionals, values } = context
  const harness = positionals['harness']?.[0] ?? 'claude'
  const write = Object.hasOwn(writers, harness) ? writers[harness] : undefined
  if (write === undefined)
    throw usageError(
      `\`${harness}\` is none of the harnesses whose settings are known.`,
      `Name one of ${Object.keys(writers).join(', ')}.`,
    )
  const { server, token } = (await context.connect()).caller
  const isFilled = values.local['with-token'] === true
  out.exact(`${write({ url: `${server}/api/v1/mcp`, token: isFilled ? token : null })}\n`)
  if (!isFilled) out.message(`The harness needs a login token in its environment, as ${variable}.`)
}
