import { entry, type ErrorEntry } from './error-entry.ts'
import {
  connectionErrors,
  fileErrors,
  learningErrors,
  mcpErrors,
  pluginErrors,
  skillErrors,
  mailErrors,
  webhookErrors,
  wikiErrors,
  workflowErrors,
} from './error-codes-of-things.ts'

// The closed list of error codes. A code's type follows from its HTTP status (`errorTypeOf`), except for the four
// idempotency codes.

/** Any route may answer these. A route lists only its other codes. */
export const sharedErrors = {
  validation_error: entry([400, 413], 'The request does not fit its schema.', 'fix_request'),
  payload_too_large: entry(413, 'The body is larger than this route takes.', 'shrink_body'),
  auth_missing: entry(401, 'Send a bearer token in the Authorization header.', 'sign_in'),
  auth_invalid: entry(401, 'The token is unknown, expired or revoked.', 'sign_in'),
  auth_revoked: entry(401, 'The run that holds this token has ended or was given up.', 'stop'),
  'auth.agent_jwt_revoked': entry(401, "The agent's tokens were reset.", 'stop'),
  not_permitted: entry(403, 'You are not a member of the named workspace.', 'switch_workspace'),
  http_exception: entry([403, 400, 404, 405, 408, 409, 410, 417, 422, 431, 501], 'This call is refused.'),
  resource_not_found: entry(404, 'There is nothing with this id.', 'check_id'),
  not_found_or_denied: entry(404, 'There is nothing with this id, or you may not see it.', 'check_id'),
  route_not_found: entry(404, 'No route has this method and path.', 'check_path'),
  invalid_id_format: entry(400, 'The id is not in a form this route reads.', 'check_id'),
  duplicate_resource: entry(409, 'A record with these values exists.', 'change_values'),
  invalid_status_transition: entry(422, 'The status cannot change that way.', 'use_allowed_value'),
  transient_conflict: entry(503, 'Another write got in between. Try again.', 'retry'),
  database_unavailable: entry(503, 'The database cannot be reached or is at its capacity. Try again.', 'retry'),
  query_timeout: entry(504, 'The query took too long.', 'retry'),
  internal_error: entry(500, 'Something unexpected failed. The request id names it in the log.', 'retry'),
  unsupported_api_version: entry(400, 'This server speaks another version of the API.', 'change_version'),
  too_many_ids: entry(400, '`ids` holds more than 100 values.', 'split_request'),
  ids_exclusive: entry(400, '`ids` cannot be combined with a filter or with paging.', 'drop_parameters'),
  invalid_cursor: entry(400, 'The cursor is not one this list has given out.', 'start_over'),
  invalid_include: entry(400, 'An unknown value was asked to be included.', 'use_allowed_value'),
  rate_limit_exceeded: entry(429, 'Too many requests. Try again after the time given in Retry-After.', 'wait'),
  rate_limiter_unavailable: entry(503, 'The rate limiter cannot be reached. Try again.', 'retry'),
  rate_limited: entry(429, 'The agent cannot take a turn yet.', 'wait'),
  idempotency_invalid_key: entry(
    400,
    'Idempotency-Key must have 1 to 255 characters without spaces and control characters.',
    'send_key',
  ),
  idempotency_key_reused: entry(409, 'This Idempotency-Key was used with another body.', 'new_key'),
  idempotency_request_in_progress: entry(409, 'The first request with this Idempotency-Key is still running.', 'wait'),
  idempotency_effect_unknown: entry(
    409,
    'The first request with this Idempotency-Key failed partway. Look at the record, then use a new key.',
    'check_record',
  ),
} as const

export const agentErrors = {
  config_write_forbidden: entry(400, 'Settings are changed with PUT /agents/{agentId}/config.', 'use_config_route'),
  identity_write_forbidden: entry(
    400,
    'An agent changes its AGENT.md with PUT .../identity/agent-md.',
    'use_identity_route',
  ),
  reporting_cycle: entry(400, 'The new manager reports to this agent.', 'choose_another'),
  handle_taken: entry(409, 'Another agent took this handle in the meantime. Try again.', 'retry'),
  folder_requires_device_environment: entry(
    422,
    'An agent that runs in the cloud has no default folder.',
    'change_environment',
  ),
  default_folder_forbidden: entry(
    403,
    "Only the agent's owner or a workspace admin sets its default folder.",
    'ask_owner',
  ),
  default_repo_forbidden: entry(403, "Only the agent's owner or a workspace admin sets its default repo.", 'ask_owner'),
  agent_self_only: entry(403, 'An agent reads and writes only its own configuration.', 'use_own_agent'),
  agent_config_human_only: entry(403, 'Only a person changes this setting.', 'ask_person'),
  agent_md_stale: entry(409, 'AGENT.md was changed since. Read it again.', 'read_again'),
  config_revert_unsupported: entry(422, 'This kind of change cannot be reverted.'),
  restore_forbidden: entry(403, 'Only the owner or a workspace admin restores this.', 'ask_owner'),
  not_deleted: entry(409, 'This is not deleted.'),
  list_deleted_forbidden: entry(403, 'An agent cannot list what is deleted.', 'ask_person'),
  'owner_transfer.forbidden': entry(403, 'Only the owner or a workspace admin names a new owner.', 'ask_owner'),
  'owner_transfer.same_owner': entry(409, 'This is the owner already.'),
  'owner_transfer.user_not_found': entry(404, 'The new owner is not a member of this workspace.', 'check_id'),
  platform_change_requires_run: entry(403, 'An agent asks for such a change only within a live run.'),
} as const

export const runErrors = {
  'run.not_cancellable': entry(409, 'The run has ended.'),
  'run.not_retriable': entry([409, 503], 'Only a run that failed or was cancelled can be retried.'),
  'run.cancel_forbidden': entry(403, 'You may not cancel or retry this run.', 'ask_owner'),
  'run.manifest_not_pinned': entry(404, 'No manifest is stored for this run.'),
  'run.context_not_stored': entry(404, 'No prompt is stored for this run.'),
  'expand.not_allowed_on_list': entry(400, 'A list takes no `expand`. Read the single object.', 'drop_parameters'),
  expand_unknown: entry(400, 'An unknown value was asked to be expanded.', 'use_allowed_value'),
  'run_output.not_this_run': entry(403, "Only the run's own token records its output.", 'use_run_token'),
  'run_output.run_terminal': entry(409, 'The run has ended.'),
  'run_output.invalid': entry(422, 'The output does not fit the named schema.', 'fix_request'),
  credits_harness_unsupported: entry(422, 'A cloud run paid by credits cannot use this harness.', 'change_harness'),
  credential_unbrokerable: entry(
    422,
    "The provider's key cannot be used on this harness in the cloud.",
    'change_harness',
  ),
  source_unknown: entry(404, 'It is not known where this run worked.'),
  repo_unavailable: entry(409, 'The repository of this run cannot be read now.', 'retry'),
  too_large: entry(413, 'The change-set is too large.'),
  diff_unavailable: entry(502, 'The change-set could not be computed.', 'retry'),
} as const

export const workspaceErrors = {
  slug_taken: entry(409, 'The slug is used or was used by another workspace.', 'change_values'),
  agent_no_workspace_access: entry(403, 'An agent has no access to members, invites and leaving.', 'ask_person'),
} as const

export const projectErrors = {
  prefix_reserved: entry(422, "This is the prefix of the workspace's task keys.", 'change_values'),
  duplicate_prefix: entry(409, 'Another project of this workspace has this prefix, deleted or not.', 'change_values'),
  agent_not_found: entry(404, 'There is no such agent in this workspace.', 'check_id'),
} as const

export const taskErrors = {
  task_not_found: entry(404, 'There is no task with this id or key that you can see.', 'check_id'),
  task_duplicate: entry(409, 'An open task looks like the same work; `details.match` names it.', 'send_force'),
  task_key_contention: entry(409, 'Another task took this key. Try again.', 'retry'),
  invalid_task_transition: entry(409, 'The task cannot move there from its status.', 'use_allowed_value'),
  reopen_reason_required: entry(400, 'Say why the task is reopened.', 'send_reason'),
  empty_comment: entry(400, 'A comment has some text.', 'fix_request'),
  task_archived: entry(409, 'The task is archived. Unarchive it first.', 'unarchive'),
  task_has_active_run: entry(409, 'A run works on this task. Cancel it first, or wait for its end.', 'cancel_run'),
  assignee_not_found: entry(404, 'There is no such agent in this workspace.', 'check_id'),
  assignee_lacks_access: entry(403, 'The agent cannot see the project of this task.', 'choose_another'),
  parent_task_not_found: entry(404, 'There is no such parent task that you can see.', 'check_id'),
  parent_task_cycle: entry(400, 'A task cannot lie below itself or one of its subtasks.', 'choose_another'),
  parent_task_depth_exceeded: entry(400, 'Tasks nest four levels deep at most.', 'choose_another'),
  invalid_batch: entry(400, 'The defaults or the links of this batch cannot be used.', 'fix_request'),
  task_branch_immutable: entry(409, 'The branch of a task cannot change once it is set.'),
  base_branch_without_repo: entry(400, 'A base branch needs a repo.', 'send_repo'),
  model_not_found: entry(400, 'The model is not in the catalog.', 'check_id'),
  reasoning_effort_unsupported: entry(400, 'The model does not take this reasoning effort.', 'use_allowed_value'),
  harness_model_unsupported: entry(422, 'This harness does not run this model.', 'use_allowed_value'),
  repo_not_found: entry(404, 'There is no such repo in this workspace.', 'check_id'),
  dependency_cycle: entry(400, 'A task cannot wait for itself, directly or through others.', 'choose_another'),
  dependency_task_not_found: entry(404, 'There is no such task to depend on that you can see.', 'check_id'),
  cross_company_dependency: entry(400, 'A task depends only on tasks of its own workspace.', 'choose_another'),
  dependency_not_found: entry(404, 'The task does not depend on this one.', 'check_id'),
  invalid_checklist_item: entry(400, 'A checklist item has some text.', 'fix_request'),
  checklist_item_not_found: entry(404, 'There is no such item in this checklist.', 'check_id'),
  watcher_not_found: entry(404, 'There is no such person or agent, or they do not watch this task.', 'check_id'),
} as const

export const deviceErrors = {
  remote_access_forbidden: entry(403, 'Only the owner of the device changes this.', 'ask_owner'),
  device_not_found: entry(404, 'There is no such device in this workspace.', 'check_id'),
  repo_already_mapped: entry(409, 'Another folder on this device holds this repo.', 'choose_another'),
} as const

export const automationErrors = {
  automation_not_found: entry(404, 'There is no such automation in this workspace.', 'check_id'),
  github_not_installed: entry(400, 'This server is not connected to GitHub.', 'ask_operator'),
  workflow_needs_github_trigger: entry(
    400,
    'Only an automation with a github trigger starts a workflow.',
    'fix_request',
  ),
  workflow_needs_github_event: entry(400, 'An automation that starts a workflow is fired by git events only.'),
  not_a_webhook_trigger: entry(400, 'Only an automation with a webhook trigger has a URL.', 'fix_request'),
  git_host_unavailable: entry(424, 'The git host did not answer as it should. Try again.', 'retry'),
} as const

export const conversationErrors = {
  conversation_not_found: entry(404, 'There is no conversation with this id that you can see.', 'check_id'),
  dm_already_exists: entry(409, 'You have a dm with this agent; `details.conversationId` names it.', 'use_existing'),
  dm_requires_one_agent: entry(400, 'A dm has exactly one agent.', 'fix_request'),
  dm_requires_one_user: entry(400, 'A dm has exactly one person.', 'fix_request'),
  dm_cannot_add_participant: entry(400, 'A dm takes nobody else; make a channel.', 'make_channel'),
  task_already_has_conversation: entry(409, 'The task has a conversation; `details.conversationId` names it.'),
  participant_not_found: entry(404, 'There is no such person or agent here.', 'check_id'),
  not_a_participant: entry(403, 'You are not in this conversation.', 'ask_admin'),
  not_authorized: entry(403, 'You may not do this here.', 'ask_admin'),
  conversation_dm_not_archivable: entry(409, 'A dm is not archived.'),
  conversation_dm_not_deletable: entry(409, 'A dm is not deleted.'),
  conversation_task_linked: entry(409, 'The conversation of a task is not deleted.'),
  conversation_has_live_run: entry(409, 'A run of this conversation is going on. Cancel it or wait.', 'wait'),
  conversation_busy: entry(409, 'A turn is running. Change the runtime once it is over.', 'wait'),
  send_target_required: entry(400, 'Several agents are in this conversation: name one by agentId.', 'fix_request'),
  speed_unsupported: entry(400, 'The model does not come at this speed.', 'use_allowed_value'),
  empty_message: entry(400, 'The text is empty.', 'fix_request'),
  secret_in_message: entry(400, 'The text looks like it holds a secret. Nothing was stored.', 'remove_secret'),
  parent_not_in_conversation: entry(400, 'The message replied to is not in this conversation.', 'check_id'),
  message_not_found: entry(404, 'There is no message with this id that you can see.', 'check_id'),
  message_deleted: entry(409, 'The message is deleted.'),
} as const

export const holdErrors = {
  approval_not_found: entry(404, 'There is no approval with this id that you can see.', 'check_id'),
  approval_resolved: entry(409, 'The approval is resolved already.'),
  agent_cannot_resolve_approval: entry(403, 'Only a person resolves an approval.', 'ask_person'),
  approval_assignee_mismatch: entry(403, 'The approval is assigned to somebody else.', 'reassign'),
  user_cannot_resolve_system_approval: entry(
    409,
    'The platform resolves this approval, once the budget is raised.',
    'raise_budget',
  ),
  approval_not_user_assignable: entry(409, 'This approval is resolved by the platform and assigned to nobody.'),
  user_cannot_create_approval: entry(403, 'Only an agent asks for an approval, within its run.'),
  platform_change_not_raisable: entry(403, 'A platform change is asked for by calling its own route.', 'call_route'),
  run_not_found: entry(404, 'There is no such run, or it is not yours.', 'check_id'),
  hitl_stop_failed: entry(409, 'The run cannot be stopped to wait for a person: it is ending.'),
  author_must_be_self: entry(403, 'An agent asks in its own name only.', 'use_own_agent'),
  user_cannot_create_question: entry(403, 'Only an agent asks a question, within its run.'),
  question_run_required: entry(404, 'A question is asked by a live run.', 'check_id'),
  options_required: entry(400, 'This answer mode needs options.', 'fix_request'),
  options_not_allowed: entry(400, 'This answer mode takes no options.', 'fix_request'),
  secret_request_required: entry(400, 'A `secret_input` question needs a secretRequest.', 'fix_request'),
  secret_request_not_allowed: entry(400, 'Only a `secret_input` question has a secretRequest.', 'fix_request'),
  secret_input_requires_agent: entry([400, 409], 'A secret is given to the agent that asks for it; there is none.'),
  'secret.duplicate_name': entry(409, 'A secret of this workspace has this name.', 'change_values'),
  question_task_scope_mismatch: entry(404, 'There is no such task that you can see.', 'check_id'),
  question_not_a_gate: entry(400, 'A question gates nothing; ask for an approval instead.', 'use_approval'),
  agent_cannot_answer_question: entry(403, 'Only a person answers a question.', 'ask_person'),
  question_not_found: entry(404, 'There is no question with this id that you can see.', 'check_id'),
  question_resolved: entry(409, 'The question is resolved already.'),
  question_needs_secret: entry(409, 'This question is answered with POST /questions/{id}/secret.', 'use_secret_route'),
  question_not_secret_input: entry(409, 'This question asks for no secret.', 'use_answer_route'),
  secret_provider_unbrokerable: entry(409, 'This server takes no secrets of this provider any more.', 'ask_operator'),
  invalid_answer: entry(400, 'The answer is empty.', 'fix_request'),
  answer_mode_mismatch: entry(400, "The answer does not fit the question's answer mode.", 'fix_request'),
  invalid_option_key: entry(400, 'The answer names an option that the question does not have.', 'use_allowed_value'),
  secret_not_found: entry(404, 'There is no secret with this id in this workspace.', 'check_id'),
} as const

export const errorCodes = {
  ...sharedErrors,
  ...agentErrors,
  ...runErrors,
  ...workspaceErrors,
  ...projectErrors,
  ...taskErrors,
  ...deviceErrors,
  ...conversationErrors,
  ...automationErrors,
  ...workflowErrors,
  ...fileErrors,
  ...wikiErrors,
  ...learningErrors,
  ...skillErrors,
  ...connectionErrors,
  ...mcpErrors,
  ...pluginErrors,
  ...mailErrors,
  ...webhookErrors,
  ...holdErrors,
} satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof errorCodes

/** Answers of older routes: `{ "error": "<message>" }` without a code. */
export const plainErrors = {
  'plain.revision_matches': { status: 409, message: 'The settings are as this revision left them' },
  'plain.device_not_found': { status: 404, message: 'Device not found' },
  'plain.device_not_owned': { status: 403, message: 'Device not owned by the caller' },
  'plain.workspace_slug_exists': { status: 409, message: 'A workspace with this slug exists or existed' },
  'plain.members_unavailable': { status: 501, message: 'Multi-user workspaces are unavailable' },
  'plain.comment_task_missing': { status: 404, message: 'Task not found' },
} as const satisfies Record<string, { status: number; message: string }>

export type PlainErrorId = keyof typeof plainErrors
