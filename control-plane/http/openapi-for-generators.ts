// What generators of typed clients need beyond what the schemas of the contract say.

type Json = Record<string, unknown>
interface Content {
  content?: Record<string, { schema: Json }>
}
export interface PlainOperation {
  operationId: string
  parameters?: { name: string; in: string; description?: string; schema: Json }[]
  requestBody?: Content
  responses: Record<string, Content>
}
/** The document as plain JSON, as far as it is changed here. */
export interface PlainDocument extends Json {
  paths: Record<string, Record<string, PlainOperation>>
  components: { schemas?: Record<string, Json> }
}

/**
 * Gives each body and each good answer without a name the name of its operation, so that clients have a type for it; says what the
 * parameters of paths are; and writes defaults of bodies into their descriptions, since some generators (openapi-typescript) take a
 * field with `default` for one that must be sent.
 */
export function forGenerators(document: PlainDocument): PlainDocument {
  const operations = Object.values(document.paths).flatMap((item) => Object.values(item))
  const schemas = (document.components.schemas ??= {})
  const named = new Map<string, string>()
  for (const operation of operations) {
    for (const parameter of operation.parameters ?? []) describe(parameter)
    const name = pascal(operation.operationId)
    nameContent(operation.requestBody, `${name}Body`, schemas, named)
    for (const [status, response] of Object.entries(operation.responses)) {
      const isError = Number(status) >= 400
      if (!isError) nameContent(response, `${name}${status.startsWith('3') ? 'Moved' : 'Reply'}`, schemas, named)
    }
  }
  for (const schema of Object.values(schemas)) tellDefaults(schema)
  return document
}

/** `AgentsConfigUpdate` of `agents.config.update`. */
const pascal = (id: string) =>
  id
    .split('.')
    .map((word) => word[0]!.toUpperCase() + word.slice(1))
    .join('')

/** Moves a schema of an object or of several into the components; equal ones, as those of aliases, have one name. */
function nameContent(
  owner: Content | undefined,
  wanted: string,
  schemas: Record<string, Json>,
  named: Map<string, string>,
): void {
  const json = owner?.content?.['application/json']
  if (json === undefined || !hasShape(json.schema)) return
  const text = JSON.stringify(json.schema)
  const name = named.get(text) ?? freeName(wanted, schemas)
  if (!named.has(text)) {
    named.set(text, name)
    schemas[name] = json.schema
  }
  json.schema = { $ref: `#/components/schemas/${name}` }
}
const hasShape = (schema: Json) => ['properties', 'anyOf', 'oneOf', 'allOf'].some((key) => key in schema)

function freeName(wanted: string, schemas: Record<string, Json>): string {
  if (schemas[wanted] === undefined) return wanted
  throw new Error(`a schema of the contract is called ${wanted}, which is the name of one of an operation`)
}

type Parameter = NonNullable<PlainOperation['parameters']>[number]
function describe(parameter: Parameter): void {
  const { in: place, schema, description = schema['description'] } = parameter
  if (place !== 'path' || description !== undefined) return
  const prefix = /^\^(\w+)_\[/.exec(String(schema['pattern']))?.[1]
  if (prefix !== undefined) parameter.description = `The \`${prefix}_\` id.`
  else if (schema['format'] === 'uuid') parameter.description = 'The UUID.'
}

/** Keywords whose values are no schemas. */
const dataKeys = new Set(['default', 'example', 'examples', 'enum', 'const'])

function tellDefaults(schema: unknown): void {
  if (typeof schema !== 'object' || schema === null) return
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'properties') for (const property of Object.values(value as Json)) tellDefaults(property)
    else if (!dataKeys.has(key)) for (const each of [value].flat()) tellDefaults(each)
  }
  if (!('default' in schema)) return
  const { default: value, description } = schema as Json
  const told = `Default: \`${JSON.stringify(value)}\`.`
  Object.assign(schema, { description: typeof description === 'string' ? `${description} ${told}` : told })
  delete schema.default
}
