import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { authKinds, connectionSurfaces } from '../../shared/api/connection-fields.ts'
import { brokerHost } from '../../shared/api/host-names.ts'
import { secretFields } from '../../shared/api/secrets.ts'
import { ConfigError } from '../process/config-error.ts'
import builtIn from './services.json' with { type: 'json' }

// The catalog of outside services that a workspace can connect to. `services.json` holds those that come with the server.
// `SVC_SERVICES_FILE` names a file of the same form, whose services are added, or replace those with the same id, and whose
// `clients` are the OAuth clients of services that are there, and those for MCP servers whose people sign in at an issuer.

const label = z.string().min(1).max(200)
const fieldName = z.string().regex(/^[A-Za-z]\w{0,63}$/)
const headerName = z.string().regex(/^[-!#$%&'*+.^`|~\w]{1,100}$/)
const address = z
  .string()
  .max(2_000)
  .refine(isAddress, 'is not an address that begins with https:// (or http://) and has neither user nor fragment')
const clientText = z.string().min(1).max(2_000)

/** `{name}` stands for the value of the field of that name. */
const templates = z.record(headerName, z.string().min(1).max(2_000))

const serviceField = z.strictObject({
  name: fieldName,
  label,
  required: z.boolean(),
  /** A value holds what this finds; `^` and `$` tie it to the whole value. */
  pattern: z.string().max(500).refine(isPattern, 'is not a regular expression').optional(),
  /** The variable under which a run of the surface `native` has the value. */
  env: secretFields.envVarName.optional(),
})

const oauth = z.strictObject({
  issuer: address,
  authorizeUrl: address,
  tokenUrl: address,
  revokeUrl: address.optional(),
  /** Left out of the services that come with the server: the operator registers a client of their own. */
  clientId: clientText.optional(),
  /** Left out: a public client. */
  clientSecret: clientText.optional(),
  /** The way in which the client shows its secret; default by HTTP Basic, which RFC 6749 asks of every server. */
  clientAuth: z.enum(['basic', 'post']).optional(),
  /** Parameters of the authorization request beside those of OAuth. */
  params: z.record(z.string().min(1).max(100), z.string().max(1_000)).optional(),
  /** The variable under which a run of the surface `native` has the access token. */
  env: secretFields.envVarName.optional(),
})

const serviceEntry = z
  .strictObject({
    id: z.string().regex(/^[A-Za-z0-9][-.\w]{0,99}$/),
    label,
    description: z.string().max(1_000).optional(),
    authKind: z.enum(authKinds),
    adminOnly: z.boolean().optional(),
    surfaces: z.array(z.enum(connectionSurfaces)).min(1).max(2),
    /** `headers`: of requests to it; default those of the probe, else `Authorization: Bearer` with the first field. */
    mcp: z.strictObject({ url: address, headers: templates.optional() }).optional(),
    scopes: z.array(z.string().min(1).max(500)).max(100).optional(),
    fields: z.array(serviceField).max(20).optional(),
    probe: z.strictObject({ url: address, headers: templates.optional() }).optional(),
    oauth: oauth.optional(),
    /**
     * The hosts to which programs in a sandbox may send what its variables hold, over TLS; default the hosts of the probe and of its MCP
     * server.
     */
    hosts: z.array(brokerHost).max(50).optional(),
  })
  .superRefine((service, context) => {
    const trouble = contradictionOf(service)
    if (trouble !== null) context.addIssue({ code: 'custom', ...trouble })
  })
export type Service = z.infer<typeof serviceEntry>

const servicesFile = z.strictObject({
  services: z.array(serviceEntry).max(1_000).default([]),
  clients: z
    .array(
      z.strictObject({
        /** A service that is described already. Left out: any MCP server whose people sign in at the issuer. */
        service: z.string().max(100).optional(),
        /**
         * The issuer that gave the client, for MCP servers: they name their issuer themselves, and a client is shown to no other than the
         * one that gave it.
         */
        issuer: address.optional(),
        clientId: clientText,
        clientSecret: clientText.optional(),
      }),
    )
    .max(1_000)
    .default([]),
})

export interface OperatorClient {
  clientId: string
  clientSecret?: string | undefined
}

export interface ServiceCatalog {
  find(id: string): Service | null
  /** Lists the services by their labels. */
  list(): readonly Service[]
  /** The operator's client at an issuer, for sign-ins to an MCP server: that of the service, else one for any; null: there is none. */
  clientAt(issuer: string, serviceId: string): OperatorClient | null
}

/** The services of the server and those of the operator's file. Throws ConfigError with a sentence. */
export function loadServices(file: string | null): ServiceCatalog {
  const byId = new Map(servicesFile.parse(builtIn).services.map((service) => [service.id, service]))
  const atIssuers: (OperatorClient & { issuer: string; service: string | null })[] = []
  if (file !== null) {
    const { services, clients } = readServices(file)
    for (const service of services) byId.set(service.id, service)
    clients.forEach(({ service: id = null, issuer, ...client }, at) => {
      const service = id === null ? null : (byId.get(id) ?? null)
      const refuse = (field: string, why: string) => unusable(file, [`clients[${at}].${field}: ${why}`])
      if (id !== null && service?.oauth === undefined && service?.authKind !== 'mcp_oauth')
        throw refuse('service', 'names no service that has `oauth` or is of `mcp_oauth`')
      if (service?.oauth !== undefined && issuer !== undefined)
        throw refuse('issuer', 'the service has its issuer in `oauth`')
      if (service?.oauth !== undefined)
        return void byId.set(service.id, { ...service, oauth: { ...service.oauth, ...client } })
      if (issuer === undefined) throw refuse('issuer', 'a client for MCP servers needs it')
      atIssuers.push({ ...client, issuer, service: id })
    })
  }
  const sorted = [...byId.values()].toSorted((a, b) => a.label.localeCompare(b.label, 'en'))
  return {
    find: (id) => byId.get(id) ?? null,
    list: () => sorted,
    clientAt(issuer, serviceId) {
      const there = atIssuers.filter((client) => client.issuer === issuer)
      return there.find(({ service }) => service === serviceId) ?? there.find(({ service }) => service === null) ?? null
    },
  }
}

function readServices(file: string): z.infer<typeof servicesFile> {
  let given: unknown
  try {
    given = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    // The text of a syntax error quotes what stands in the file, which holds secrets.
    throw unusable(file, [error instanceof SyntaxError ? 'It is not JSON.' : (error as Error).message])
  }
  const parsed = servicesFile.safeParse(given)
  if (!parsed.success) throw unusable(file, parsed.error.issues.flatMap(sentencesOf))
  const twice = parsed.data.services.findIndex(({ id }, at, all) => all.findIndex((one) => one.id === id) !== at)
  if (twice !== -1) throw unusable(file, [`services[${twice}].id: another service of the file has this id`])
  return parsed.data
}

const unusable = (file: string, sentences: readonly string[]) =>
  new ConfigError(`SVC_SERVICES_FILE: ${file} cannot be used.\n${sentences.join('\n')}`)

/** Returns sentences with the path of each key; without values, of which some are secret. */
function sentencesOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => `${pathOf([...issue.path, key])}: unknown key`)
  return [`${pathOf(issue.path)}: ${issue.message}`]
}

const pathOf = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : text === '' ? String(key) : `${text}.${String(key)}`),
    '',
  ) || 'the file'

function isAddress(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null
  return url !== null && /^https?:$/.test(url.protocol) && url.username + url.password + url.hash === ''
}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, 'u').source !== ''
  } catch {
    return false
  }
}

interface Described {
  authKind: (typeof authKinds)[number]
  fields?: readonly { name: string }[] | undefined
  mcp?: { headers?: Readonly<Record<string, string>> | undefined } | undefined
  probe?: { headers?: Readonly<Record<string, string>> | undefined } | undefined
  oauth?: unknown
}

/** Finds what does not go together in a service, and where; null: nothing. */
function contradictionOf(service: Described): { path: string[]; message: string } | null {
  const { authKind, fields = [], mcp, probe, oauth: given } = service
  if (authKind === 'oauth' && given === undefined) return { path: ['oauth'], message: 'a service of `oauth` needs it' }
  if (authKind === 'mcp_oauth' && mcp === undefined)
    return { path: ['mcp'], message: 'a service of `mcp_oauth` needs it' }
  if (authKind === 'api_key' && fields.length === 0)
    return { path: ['fields'], message: 'a service of `api_key` needs at least one' }
  const known = new Set(fields.map(({ name }) => name))
  if (known.size < fields.length) return { path: ['fields'], message: 'two have the same name' }
  for (const [part, headers] of [
    ['mcp', mcp?.headers ?? {}],
    ['probe', probe?.headers ?? {}],
  ] as const)
    for (const [name, template] of Object.entries(headers))
      for (const field of fieldsIn(template))
        if (!known.has(field)) return { path: [part, 'headers', name], message: `there is no field \`${field}\`` }
  return null
}

/** The names of the fields that a template of a header names. */
export const fieldsIn = (template: string): string[] => [...template.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!)
