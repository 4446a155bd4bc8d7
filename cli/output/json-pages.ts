import { fieldAt } from '../replies/fields.ts'
import type { Shape } from './shape.ts'
import type { Printer } from './printer.ts'
import { jsonText } from './terminal-text.ts'

/** Prints pages as the list that they are together: the rows as they come, then the other fields as the last page has them. */
export function createJsonPages({ list = 'data' }: Shape = {}): Pick<Printer, 'prepare' | 'page' | 'end'> {
  let many = 0
  let last: unknown = null
  const printed = (text: string) => ({ text, remark: null })
  return {
    prepare: async () => undefined,
    page(value) {
      const start = last === null ? `{${jsonText(list)}:[` : ''
      last = value
      const found = fieldAt(value, list)
      const rows = (Array.isArray(found) ? (found as unknown[]) : []).map(
        (row) => (many++ === 0 ? '' : ',') + jsonText(row),
      )
      return printed(start + rows.join('\n'))
    },
    end() {
      if (last === null) return printed(`{${jsonText(list)}:[]}\n`)
      const others = Object.entries(last as object).filter(([key]) => key !== list)
      // Some lists say how many rows stand in an answer.
      const counted = others.map(([key, value]) => [key, key === 'returnedCount' ? many : (value as unknown)] as const)
      return printed(`]${counted.map(([key, value]) => `,${jsonText(key)}:${jsonText(value)}`).join('')}}\n`)
    },
  }
}
