import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { decodeCursor, encodeCursor } from './cursor.ts'

const key = z.tuple([z.number(), z.string()])

test('a cursor gives back the key it was made of', () => {
  fc.assert(
    fc.property(fc.integer(), fc.string({ unit: 'grapheme', maxLength: 40 }), (time, id) => {
      const cursor = encodeCursor([time, id])
      expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/)
      expect(decodeCursor(cursor, key)).toEqual([time, id])
    }),
  )
})

test('any other text is no cursor', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 60 }), (text) => {
      expect(decodeCursor(text, key)).toBeNull()
    }),
  )
  expect(decodeCursor(encodeCursor(['a', 1]), key)).toBeNull()
  expect(decodeCursor(encodeCursor([1]), key)).toBeNull()
})
