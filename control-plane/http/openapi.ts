import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiResponsesObject } from 'zod-openapi'
import { z } from 'zod'
import { errorEnvelope, hasShortEnvelope, plainErrorEnvelope, shortErrorEnvelope } from '../../shared/api/errors.ts'
import { openapiRoutes } from '../../shared/api/openapi.ts'
import { uuid } from '../../shared/api/ids.ts'
import { rawBody, type AnyRoute } from '../../shared/api/route.ts'
import { forGenerators, type PlainDocument } from './openapi-for-generators.ts'
import { implement, type ImplementedRoute } from './implement.ts'
import { apiVersion } from './mount.ts'
import { errorsOf, type RouteErrors } from './route-errors.ts'

/** The OpenAPI 3.1 document, made from the contract. */
export function openApiDocument(contract: readonly AnyRoute[], serverUrl: string): Record<string, unknown> {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {}
  for (const route of contract) {
    const method = route.method.toLowerCase()
    for (const path of [route.path, ...route.aliases]) {
      const item = (paths[route.base + path] ??= {})
      item[method] = operationOf(route, route.aliasIds[path] ?? null)
    }
  }
  const document = createDocument({
    openapi: '3.1.0',
    info: {
      title: 'svc',
      version: apiVersion,
      description:
        'Runs AI coding agents on the machines of their people. Where this document and the written rules differ, the rules hold.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: serverUrl }],
    security: [{ bearer: [] }],
    tags: tagsOf(contract),
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'A login token of a person, or the token of an agent’s run.',
        },
        session: { type: 'apiKey', in: 'cookie', name: 'svc_session', description: 'A dashboard session.' },
      },
      headers: headerComponents,
    },
  })
  return forGenerators(document as unknown as PlainDocument)
}

/** The route that serves the document; it is made once, when it is first asked for. */
export function implementOpenApi(contract: readonly AnyRoute[], serverUrl: string): ImplementedRoute[] {
  let document: Record<string, unknown> | null = null
  return implement(openapiRoutes, {
    get: () => Promise.resolve((document ??= openApiDocument(contract, serverUrl))),
  })
}

function tagsOf(contract: readonly AnyRoute[]) {
  const names = [...new Set(contract.map(tagOf))]
  return names.map((name) => ({ name, description: `Routes of ${name}.` }))
}

/** `agents` of `agents.config.get`. */
const tagOf = (route: AnyRoute) => route.id.split('.')[0] ?? route.id

const headerComponents = {
  'Request-Id': { description: 'Names this request in the log.', required: true, schema: { type: 'string' } },
  'RateLimit-Policy': { description: 'The limit that counts this request.', schema: { type: 'string' } },
  RateLimit: { description: 'What is left of the limit, and for how many seconds.', schema: { type: 'string' } },
  'Retry-After': { description: 'Seconds to wait before the next try.', schema: { type: 'integer' } },
  'Idempotency-Replayed': {
    description: '`true`: the answer of the first request with this Idempotency-Key.',
    schema: { type: 'string', const: 'true' },
  },
} as const
type HeaderName = keyof typeof headerComponents

const headersOf = (...names: HeaderName[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

function operationOf(route: AnyRoute, aliasId: string | null): ZodOpenApiOperationObject {
  const callers = callersText(route)
  return {
    operationId: aliasId ?? route.id,
    summary: aliasId === null ? route.summary : `${route.summary} (another path of \`${route.id}\`)`,
    description: [route.description, callers].filter((text) => text !== null).join('\n\n'),
    tags: [tagOf(route)],
    ...(route.callers === 'none' ? { security: [] } : { security: [{ bearer: [] }, { session: [] }] }),
    requestParams: {
      ...(isEmpty(route.params) ? {} : { path: route.params }),
      ...(isEmpty(route.query) ? {} : { query: route.query }),
      header: requestHeaders(route),
    },
    ...requestBodyOf(route),
    responses: responsesOf(route),
  }
}

function requestBodyOf({ body }: AnyRoute): Pick<ZodOpenApiOperationObject, 'requestBody'> {
  if (body.def.type === 'undefined') return {}
  if (body === rawBody)
    return { requestBody: { content: { '*/*': { schema: z.string().meta({ format: 'binary' }) } } } }
  const required = !body.safeParse({}).success
  return { requestBody: { required, content: { 'application/json': { schema: body } } } }
}

const isEmpty = (schema: z.ZodObject) => Object.keys(schema.shape).length === 0

function requestHeaders(route: AnyRoute): z.ZodObject {
  const key = z.string().min(1).max(255).describe('A retry with the same key gets the first answer; kept 24 hours.')
  return z.object({
    'Svc-Version': z.literal(apiVersion).optional(),
    ...(route.callers === 'none'
      ? {}
      : { 'Svc-Workspace-Id': uuid.optional().describe('Picks the workspace of a dashboard session.') }),
    ...(route.idempotency === 'none'
      ? {}
      : { 'Idempotency-Key': route.idempotency === 'required' ? key : key.optional() }),
    ...(route.stream !== 'sse'
      ? {}
      : { 'Last-Event-ID': z.string().optional().describe('Goes on after this message.') }),
  })
}

function callersText({ callers }: AnyRoute): string {
  if (callers === 'none') return 'No token is needed.'
  const { person, agent } = callers
  const people =
    typeof person === 'object'
      ? `a person gets 403 \`${person.refused}\``
      : person === 'member'
        ? 'any person'
        : `a person with the role ${person}`
  if (typeof agent === 'object') return `Callers: ${people}; an agent gets 403 \`${agent.refused}\`.`
  return agent === 'allowed'
    ? `Callers: ${people}; an agent.`
    : `Callers: ${people}; for an agent the change waits for approval (202).`
}

function responsesOf(route: AnyRoute): ZodOpenApiResponsesObject {
  const responses: Record<string, object> = {
    [route.status]: {
      description: 'Done.',
      headers: goodHeaders(route),
      ...(route.status === 204 ? {} : { content: contentOf(route, route.reply) }),
    },
  }
  for (const [status, schema] of Object.entries(route.otherReplies)) {
    responses[status] = {
      description: status === '202' ? 'Waits for approval.' : 'Done.',
      headers: goodHeaders(route),
      content: { 'application/json': { schema } },
    }
  }
  for (const [status, errors] of errorsOf(route)) responses[status] = errorResponse(status, errors)
  return responses as ZodOpenApiResponsesObject
}

function goodHeaders(route: AnyRoute) {
  const names: HeaderName[] = ['Request-Id']
  if (route.rate !== 'none') names.push('RateLimit-Policy', 'RateLimit')
  if (route.idempotency !== 'none') names.push('Idempotency-Replayed')
  return headersOf(...names)
}

function contentOf(route: AnyRoute, schema: z.ZodType) {
  const json = { 'application/json': { schema } }
  return route.stream !== 'sse' ? json : { ...json, 'text/event-stream': { schema: z.string() } }
}

function errorResponse(status: number, { codes, plain }: RouteErrors) {
  const lines = codes.map((code) => `\`${code}\``)
  const plainText = plain.length === 0 ? '' : ` Or plain: ${plain.map((message) => `"${message}"`).join(', ')}.`
  const short = codes.filter(hasShortEnvelope)
  const forms = [
    ...(codes.length > short.length ? [errorEnvelope] : []),
    ...(short.length > 0 ? [shortErrorEnvelope] : []),
    ...(plain.length > 0 ? [plainErrorEnvelope] : []),
  ]
  const schema = forms.length === 1 ? forms[0]! : z.union(forms)
  const waits = status === 429 || status === 503
  return {
    description: `${lines.join(', ')}${lines.length === 0 ? '' : '.'}${plainText}`.trim(),
    headers: waits ? headersOf('Request-Id', 'Retry-After') : headersOf('Request-Id'),
    content: { 'application/json': { schema } },
  }
}
