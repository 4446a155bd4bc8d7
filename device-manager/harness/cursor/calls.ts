const suffix = 'ToolCall'
const known: Readonly<Record<string, string>> = {
  shell: 'Bash',
  ls: 'LS',
  webFetch: 'WebFetch',
  webSearch: 'WebSearch',
}

/** A tool of Cursor's (`shellToolCall`) by the name that rules and people know. */
export function toolNameOf(key: string, args: unknown): string {
  const name = key.endsWith(suffix) ? key.slice(0, -suffix.length) : key
  if (name === 'mcp') {
    const { providerIdentifier, toolName } = (typeof args === 'object' && args !== null ? args : {}) as Record<
      string,
      unknown
    >
    return `mcp__${textOr(providerIdentifier, 'unknown')}__${textOr(toolName, 'unknown')}`
  }
  if (Object.hasOwn(known, name)) return known[name]!
  return name === '' ? 'Unknown' : name[0]!.toUpperCase() + name.slice(1)
}

const textOr = (value: unknown, otherwise: string): string =>
  typeof value === 'string' ? value.slice(0, 80) : otherwise

/** The result of a call; `success` alone is none of its failures. */
export function cursorResultOf(result: unknown): { isError: boolean; output: string } {
  const [kind, body] = Object.entries(typeof result === 'object' && result !== null ? result : {})[0] ?? ['', null]
  const fields = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  const texts = [fields['stdout'], fields['stderr'], fields['content'], fields['reason'], fields['message']]
  const said = texts.filter((text): text is string => typeof text === 'string' && text !== '').join('\n')
  return { isError: kind !== 'success', output: said === '' ? JSON.stringify(result ?? null) : said }
}
