import { expect, test } from 'vitest'
import { z } from 'zod'
import { ApiError } from '../../shared/api/errors.ts'
import { defineRoute } from '../../shared/api/route.ts'
import { createValidator } from './validate.ts'

const route = defineRoute({
  id: 'things.create',
  endpoint: 'POST /things',
  summary: 'Create a thing',
  query: z.object({ order: z.enum(['up', 'down']).optional() }),
  body: z.object({ size: z.enum(['small', 'large']).nullable().optional(), name: z.string().max(3).optional() }),
  reply: z.object({}),
})
const validator = createValidator(route)

function faultOf(work: () => unknown) {
  try {
    work()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const { param, allowedValues } = error.options
    return { code: error.code, param, allowedValues }
  }
  throw new Error('it was taken')
}

test('a value that is none of a few is told with those that are', () => {
  const code = 'validation_error'
  expect(faultOf(() => validator.body({ size: 'huge' }))).toEqual({
    code,
    param: 'size',
    allowedValues: ['small', 'large'],
  })
  expect(faultOf(() => validator.query('order=left'))).toEqual({ code, param: 'order', allowedValues: ['up', 'down'] })
})

test('any other fault tells no values', () => {
  expect(faultOf(() => validator.body({ name: 'much too long' })).allowedValues).toBeUndefined()
})
