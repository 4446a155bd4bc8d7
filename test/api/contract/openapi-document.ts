import { contract } from '../../../shared/api/index.ts'
import type { TestServer } from '../../kit/server.ts'

// The OpenAPI document as a client reads it from a running server.

export interface JsonSchema {
  $ref?: string
  type?: string | string[]
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  allOf?: JsonSchema[]
  enum?: unknown[]
  const?: unknown
  default?: unknown
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  format?: string
  example?: unknown
  examples?: unknown[]
  additionalProperties?: boolean | JsonSchema
}
export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  schema: JsonSchema
}
interface Content {
  content?: Record<string, { schema: JsonSchema }>
}
export interface Operation {
  operationId: string
  parameters?: Parameter[]
  requestBody?: Content & { required?: boolean }
  responses: Record<string, Content & { description: string }>
}
export interface OpenApiDocument {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, JsonSchema> }
}

export const readDocument = async (server: TestServer): Promise<OpenApiDocument> =>
  (await server.ok('/openapi.json', { base: '/api' })) as OpenApiDocument

const routesOfAliases = new Map(
  contract.flatMap(({ id, aliasIds }) => Object.values(aliasIds).map((aliasId) => [aliasId, id] as const)),
)
/** The id of its route: an alias of a path has an operation of its own. */
export const routeIdOf = ({ operationId }: Operation): string => routesOfAliases.get(operationId) ?? operationId

/** The operation of a method and path below /api/v1, whatever the path's parameters are called. */
export function operationAt(document: OpenApiDocument, method: string, path: string): Operation | null {
  const wanted = nameless(path)
  const found = Object.entries(document.paths).find(([each]) => nameless(each) === wanted)
  return found?.[1][method.toLowerCase()] ?? null
}
const nameless = (path: string) => path.replaceAll(/\{\w+\}/g, '{}')

/** A schema with its reference followed. */
export function resolved(document: OpenApiDocument, schema: JsonSchema): JsonSchema {
  const name = schema.$ref?.replace('#/components/schemas/', '')
  if (name === undefined) return schema
  const target = document.components.schemas[name]
  if (target === undefined) throw new Error(`the document has no schema ${name}`)
  return resolved(document, target)
}

/** The keys that a JSON body may have. */
export function bodyKeys(document: OpenApiDocument, operation: Operation): string[] {
  const schema = operation.requestBody?.content?.['application/json']?.schema
  if (schema === undefined) return []
  const keysOf = (each: JsonSchema): string[] => {
    const { properties, anyOf, oneOf, allOf } = resolved(document, each)
    return [...Object.keys(properties ?? {}), ...[...(anyOf ?? []), ...(oneOf ?? []), ...(allOf ?? [])].flatMap(keysOf)]
  }
  return keysOf(schema)
}
