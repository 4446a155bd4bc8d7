import { fail } from '../../../shared/api/errors.ts'

/** The text of a body that must have one. `param`: its first name. */
export function requiredText(text: string | undefined, param = 'body'): string {
  if (text !== undefined) return text
  const fields = [{ path: param, message: 'required' }]
  return fail('validation_error', { param, message: `Send the text as \`${param}\`.`, details: { fields } })
}
