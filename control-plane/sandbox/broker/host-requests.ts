import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { Redactor } from '../../../shared/lib/redact.ts'
import type { NetworkDecision } from '../../../shared/runs/network.ts'
import { hostWithPort } from '../../outbound/host-name.ts'
import { ConnectionUnusable } from '../../resources/connections/for-runs.ts'
import { placeholderForm, type BrokeredSecret } from '../../resources/secrets/in-cloud.ts'
import { forward, isPacked, type BrokerRequest, type ForwardOptions } from './forward.ts'
import { modelLimits, type ModelLimits } from './model-requests.ts'
import { endWith, refuseRequest } from './plain-answers.ts'
import { ValueGuard } from './value-guard.ts'

export type HostLimits = ModelLimits
export const hostLimits: HostLimits = modelLimits

/**
 * The most characters of all values of a run together: the tables by which longer ones are found take longer to make than a server may
 * stand still.
 */
const mostChars = 32 * 1024

/** A token may be renewed while an answer to the one before still comes. */
const mostKept = 3

/** The reason for which a request is not let through. */
class Refusal extends Error {
  override name = 'HostRefusal'
}

/**
 * Hands requests for the hosts that are named on secrets of the run on to them, over TLS, with the values in place of the placeholders.
 * The sandbox asks in plain HTTP, as a proxy is asked, so that its headers can be read here.
 */
export class HostRequests {
  private readonly options: ForwardOptions & { limits: HostLimits }
  private open = 0
  private guard: { of: string; redactor: Redactor } | null = null
  /** Values of connections that were sent, the last few of each: what a host was told it may repeat later. */
  private readonly sent = new Map<string, readonly string[]>()

  constructor(options: HostRequests['options']) {
    this.options = options
  }

  /** Resolves when the answer has ended, with what became of it. `target`: an absolute address. */
  async pass(
    { request, response, target }: BrokerRequest & { target: string },
    secrets: readonly BrokeredSecret[],
  ): Promise<NetworkDecision> {
    const { limits } = this.options
    const url = addressOf(target)
    const place = url && hostWithPort(url)
    if (url === null || place === null || !isNamed(place, secrets))
      return refuseRequest(response, 403, `The broker of this sandbox does not let ${place ?? 'this'} through.`)
    if (Number(request.headers['content-length'] ?? 0) > limits.sentBytes)
      return refuseRequest(response, 413, 'The request is larger than the broker of this sandbox takes.')
    if (this.open >= limits.open) return refuseRequest(response, 429, 'Too many requests are open at once.')
    this.open++
    try {
      const current = await this.renewedFor(request, { place, secrets })
      const headers = headersTo(request, { url, place, secrets: current })
      const redactor = this.redactorOf(current)
      return await forward(
        { request, response },
        {
          url,
          headers,
          hasBody: hasBody(request),
          whom: place,
          headOf: (answer) => headOf(answer, { place, redactor }),
          guards: [new ValueGuard(redactor.another(), limits.answerBytes)],
          end: endWith,
        },
        this.options,
      )
    } catch (error) {
      if (error instanceof Refusal) return refuseRequest(response, 403, error.message)
      throw error
    } finally {
      this.open--
    }
  }

  /** The secrets, with their current values where the request has their placeholders and may send them to this host. */
  private renewedFor(request: IncomingMessage, { place, secrets }: Filling): Promise<BrokeredSecret[]> {
    const named = placeholdersIn(request)
    return Promise.all(
      secrets.map(async (secret) => {
        const { name, placeholder, hosts, renewed } = secret
        if (renewed === undefined || !named.has(placeholder) || !hosts.has(place)) return secret
        const value = await renewed().catch((error: unknown) => {
          if (error instanceof ConnectionUnusable) throw new Refusal(`${name} has no value: ${error.message}`)
          throw error
        })
        if (value !== null)
          this.sent.set(name, [...(this.sent.get(name) ?? []).filter((one) => one !== value), value].slice(-mostKept))
        return { ...secret, value }
      }),
    )
  }

  /** Returns a redactor of all values of the run: a host might repeat what another one was told. */
  private redactorOf(secrets: readonly BrokeredSecret[]): Redactor {
    const values = [
      ...secrets.flatMap(({ name, value, renewed }) =>
        value === null || renewed !== undefined ? [] : [{ name, value }],
      ),
      ...[...this.sent].flatMap(([name, all]) => all.map((value) => ({ name, value }))),
    ]
    if (values.reduce((sum, { value }) => sum + value.length, 0) > mostChars)
      throw new Refusal(`The secrets of this run are longer than ${mostChars} characters together.`)
    const of = JSON.stringify(values)
    if (this.guard?.of !== of) this.guard = { of, redactor: new Redactor(values) }
    return this.guard.redactor
  }
}

/** Tells whether one of the secrets names the host. */
export const isNamed = (place: string, secrets: readonly BrokeredSecret[]): boolean =>
  secrets.some(({ hosts }) => hosts.has(place))

/** The address that is asked outside; null: it is none. */
function addressOf(target: string): URL | null {
  const url = /^https?:\/\//i.test(target) ? URL.parse(target.replace(/^http:/i, 'http:')) : null
  if (url === null || url.username !== '' || url.password !== '') return null
  return URL.parse(`https://${url.port === '' ? url.hostname : url.host}${url.pathname}${url.search}`)
}

/** Headers between the sandbox and its broker, which no host gets. */
const ofConnection =
  /^(?:host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|content-length|accept-encoding|x-forwarded-.*|x-real-ip|forwarded|via)$/
/** Headers that hosts are wont to write down and to show. */
const shown = /^(?:user-agent|referer|origin|from|content-.*|accept.*)$/

function headersTo(
  request: IncomingMessage,
  { url, place, secrets }: { url: URL; place: string; secrets: readonly BrokeredSecret[] },
): OutgoingHttpHeaders {
  if (!['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].includes(request.method ?? ''))
    throw new Refusal('The broker of this sandbox does not let this method through.')
  if (url.href.search(placeholderForm) >= 0)
    throw new Refusal('The broker puts secrets into headers alone, and not into addresses.')
  const named = (request.headers.connection ?? '').toLowerCase().split(/[\s,]+/)
  const headers: OutgoingHttpHeaders = {}
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || ofConnection.test(name) || named.includes(name)) continue
    const text = Array.isArray(value) ? value.join(', ') : value
    const filled = fill(text, { place, secrets })
    if (filled !== text && shown.test(name)) throw new Refusal(`The broker puts no secret into the header ${name}.`)
    headers[name] = filled
  }
  return { ...headers, host: url.host, 'accept-encoding': 'identity' }
}

/** The placeholders in a request, which may have any number of them. */
function placeholdersIn({ headers }: IncomingMessage): ReadonlySet<string> {
  const texts = Object.values(headers).flatMap((value) => value ?? [])
  const packed = texts.flatMap((text) => basicForm.exec(text)?.[2] ?? [])
  const opened = packed.map((text) => Buffer.from(text, 'base64').toString('latin1'))
  return new Set([...texts, ...opened].flatMap((text) => text.match(placeholderForm) ?? []))
}

type Filling = { place: string; secrets: readonly BrokeredSecret[] }

const basicForm = /^(basic +)([\w+/=-]+)$/i

function fill(text: string, filling: Filling): string {
  const [, scheme, packed] = basicForm.exec(text) ?? []
  if (scheme === undefined || packed === undefined) return replaced(text, filling)
  const account = Buffer.from(packed, 'base64').toString('latin1')
  const filled = replaced(account, filling)
  return filled === account ? text : scheme + Buffer.from(filled, 'latin1').toString('base64')
}

/** A placeholder of another run or for other hosts goes nowhere, so that a mistake is told. */
const replaced = (text: string, { place, secrets }: Filling): string =>
  text.replace(placeholderForm, (placeholder) => {
    const secret = secrets.find((each) => each.placeholder === placeholder)
    if (secret === undefined) throw new Refusal('This run has no secret for which this placeholder stands.')
    const { name, value, hosts } = secret
    if (!hosts.has(place)) throw new Refusal(`The secret in ${name} is not for ${place}.`)
    if (value === null) throw new Refusal(`The secret in ${name} cannot be used.`)
    return value
  })

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

const kept =
  /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|alt-svc|strict-transport-security)$/

/** The broker follows no redirect. A program that follows one asks anew, and by plain HTTP where it stays with the host. */
function headOf(
  answer: IncomingMessage,
  { place, redactor }: { place: string; redactor: Redactor },
): OutgoingHttpHeaders | string {
  if (isPacked(answer)) return `${place} answers in a packed form that was not asked for.`
  const entries = Object.entries(answer.headers).filter(([name]) => !kept.test(name))
  const text = JSON.stringify(entries)
  if (redactor.redactText(text) !== text) return `${place} told the secret in its answer.`
  const { location } = answer.headers
  const next = location === undefined ? null : URL.parse(location)
  const isHere = next?.protocol === 'https:' && hostWithPort(next) === place
  return { ...Object.fromEntries(entries), ...(isHere && { location: next.href.replace(/^https:/, 'http:') }) }
}
