import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { hasShortEnvelope } from '../../../shared/api/errors.ts'
import type { Target } from './fuzz-requests.ts'
import type { OpenApiDocument } from './openapi-document.ts'

export interface Answer {
  status: number
  text: string
  requestId: string | null
}

/** Checks answers against the document's own schemas. */
export function makeJudge(document: OpenApiDocument) {
  const ajv = new Ajv2020({ strict: false, allErrors: false })
  ajv.addFormat('uuid', /^[0-9a-f-]{36}$/i)
  ajv.addFormat('date-time', (text: string) => !Number.isNaN(Date.parse(text)))
  ajv.addFormat('uri', (text: string) => URL.canParse(text))
  ajv.addSchema(document, 'openapi')
  const compiled = new Map<object, ValidateFunction>()
  const byText = new Map<string, ValidateFunction>()
  return (schema: object, value: unknown): string | null => {
    let validate = compiled.get(schema)
    if (validate === undefined) {
      const text = JSON.stringify(schema).replaceAll('"#/components', '"openapi#/components')
      // The envelope of errors stands with each route.
      validate = byText.get(text) ?? ajv.compile(JSON.parse(text) as object)
      byText.set(text, validate)
      compiled.set(schema, validate)
    }
    return validate(value) ? null : ajv.errorsText(validate.errors)
  }
}

export type Judge = ReturnType<typeof makeJudge>
export function troubleWith({ operation }: Target, reply: Answer, judge: Judge): string | null {
  const declared = operation.responses[String(reply.status)]
  if (declared === undefined) return `status ${reply.status} is not in the document`
  if (reply.requestId === null) return 'no Request-Id'
  const schema = declared.content?.['application/json']?.schema
  if (schema === undefined) return reply.text === '' ? null : 'a body where there is none'
  let body: unknown
  try {
    body = JSON.parse(reply.text)
  } catch {
    return `not JSON: ${reply.text.slice(0, 200)}`
  }
  const misfit = judge(schema, body)
  if (misfit !== null) return misfit
  const { error } = body as { error?: { code?: string; requestId?: string } | string }
  if (reply.status < 400 || typeof error === 'string') return null
  const isShort = error?.code !== undefined && hasShortEnvelope(error.code)
  if (!isShort && error?.requestId !== reply.requestId) return 'requestId is not that of the header'
  return declared.description.includes(`\`${error?.code}\``) ? null : `${error?.code} is not in the document`
}
