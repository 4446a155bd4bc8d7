import { Redactor, type SecretValue } from '../../../shared/lib/redact.ts'

/** Addresses that one server named, the oldest of which is forgotten. */
const mostAddresses = 100
/** The most characters that are looked for in answers: the search tables of more would take longer than a server may stand still. */
const mostChars = 32 * 1024

/** Remembers what a broker knows of one MCP server. */
export class ServerMemory {
  /** Requests that are open. */
  readonly open = new Set<AbortController>()
  /** The addresses that the server named, by the numbers that the sandbox was given for them. */
  readonly addresses = new Map<string, URL>()
  redactor = new Redactor([])
  private secrets: SecretValue[] = []
  private count = 0

  numberOf(address: URL): string {
    const known = [...this.addresses].find(([, { href }]) => href === address.href)
    if (known !== undefined) return known[0]
    const number = String(++this.count)
    this.addresses.set(number, address)
    this.addresses.delete(String(this.count - mostAddresses))
    return number
  }

  /** Is called before values are sent. Answers that are open are searched for them, too, or end. */
  learn(secrets: readonly SecretValue[], own: AbortController): void {
    const added = secrets.filter(({ value }) => !this.secrets.some((known) => known.value === value))
    if (added.length === 0) return
    const all = [...this.secrets, ...added]
    if (all.reduce((sum, { value }) => sum + value.length, 0) <= mostChars) {
      this.secrets = all
      return this.redactor.add(...added)
    }
    this.secrets = [...secrets]
    this.redactor = new Redactor(secrets)
    for (const other of this.open) if (other !== own) other.abort(new Error('its credential was renewed too often'))
  }
}

export class McpMemory {
  private readonly servers = new Map<string, ServerMemory>()

  /** `name`: of a server of the run, of which there are few. */
  of(name: string): ServerMemory {
    const known = this.servers.get(name) ?? new ServerMemory()
    this.servers.set(name, known)
    return known
  }

  all(): [string, ServerMemory][] {
    return [...this.servers]
  }
}
