import { fail } from '../../../shared/api/errors.ts'

/** The text of a body that must have one. */
export function requiredText(text: string | undefined): string {
  if (text !== undefined) return text
  const fields = [{ path: 'body', message: 'required' }]
  return fail('validation_error', { param: 'body', message: 'Send the text as `body`.', details: { fields } })
}
