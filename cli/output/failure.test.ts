import { expect, test } from 'vitest'
import { version } from '../../shared/lib/version.ts'
import { ApiFailure } from '../errors/cli-error.ts'
import { envelopeOf, sentenceOf } from './failure.ts'

test('a server that does not know a route is told to be of an older release, and what helps', () => {
  const error = {
    type: 'invalid_request_error',
    code: 'route_not_found',
    message: 'No route has this method and path.',
    remediation: 'check_path',
  }
  const failure = new ApiFailure(404, { error })
  const said = sentenceOf(failure, false)
  expect(said).toContain(`older release than this svc (${version}): upgrade svc on the server's machine`)
  expect(said).not.toContain('Check the path')
  expect(envelopeOf(failure)).toEqual({ error })
})
