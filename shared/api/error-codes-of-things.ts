import { entry } from './error-entry.ts'

// Codes of workflows, files, the wiki, learnings, skills and connections.

export const workflowErrors = {
  workflow_name_taken: entry(409, 'A workflow of this workspace has this name.', 'change_values'),
  workflow_name_mismatch: entry(400, 'The program names itself otherwise than the workflow.', 'fix_request'),
  workflow_syntax: entry(400, 'The program does not parse.', 'fix_request'),
  workflow_import: entry(400, 'A program imports nothing.', 'fix_request'),
  workflow_banned_global: entry(400, 'The program uses a name that it is not given.', 'fix_request'),
  workflow_meta_missing: entry(400, 'A program begins with `export const meta = { ... }`.', 'fix_request'),
  workflow_meta_not_literal: entry(400, '`meta` holds plain values only.', 'fix_request'),
  workflow_meta_invalid: entry(400, '`meta` does not fit its schema.', 'fix_request'),
  workflows_not_configured: entry(503, 'This server runs no workflows.', 'ask_operator'),
  workflows_catalog_unavailable: entry(502, 'The built-in programs cannot be read.', 'ask_operator'),
  workflow_source_unavailable: entry(502, 'The built-in programs cannot be read.', 'ask_operator'),
} as const

export const fileErrors = {
  content_required: entry(400, 'Send the bytes as base64 in `contentBase64`.', 'fix_request'),
  'expand.content_too_large': entry(400, 'The file is too large to be read in one answer. Download it.', 'download'),
  visibility_flip_forbidden: entry(403, 'Only the owner or a workspace admin makes a file private.', 'ask_owner'),
  restore_r2_gone: entry(422, 'The bytes of this file were removed with it.'),
  kind_mismatch: entry(400, 'This file has no stored bytes.'),
  duplicate_relation: entry(409, 'The file has this relation already.'),
  relation_not_found: entry(404, 'The file has no relation with this id.', 'check_id'),
  storage_unavailable: entry(503, 'The storage of files cannot be reached or is full. Try again.', 'retry'),
  sweeper_not_registered: entry(503, 'The server is starting. Try again.', 'retry'),
} as const

export const wikiErrors = {
  wiki_page_not_found: entry(404, 'There is no page with this id or slug.', 'check_id'),
  wiki_revision_not_found: entry(404, 'The page has no such revision.', 'check_id'),
  wiki_stale_base_revision: entry(409, 'The page was changed since. Read it again.', 'read_again'),
  wiki_body_truncated: entry(422, 'The body holds the mark of a text that was cut. Send all of it.', 'send_whole_body'),
  wiki_body_shrunk: entry(422, 'The body has less than 60 % of the bytes of the current one.', 'send_allow_shrink'),
  wiki_citation_style: entry(
    422,
    'The body has numbered citations or a section of sources. Cite with links where they belong.',
    'use_inline_links',
  ),
  wiki_page_slug_conflict: entry(409, 'Another page has this slug, live or archived.', 'change_values'),
  wiki_publish_failed: entry(409, 'The body cannot be published on this page.', 'fix_request'),
  wiki_source_page_immutable: entry(409, 'The files that this page comes from say its slug and whether it is live.'),
  wiki_relation_self: entry(400, 'A page does not supersede itself.', 'choose_another'),
  wiki_relation_exists: entry(409, 'One of these pages supersedes the other, directly or through others.'),
  wiki_relation_workspace_mismatch: entry(400, 'There is no such page in this workspace.', 'check_id'),
  wiki_ingest_request_too_large: entry(400, 'The request has more than 8 MiB. Send several.', 'fix_request'),
  wiki_ingest_invalid_root: entry(400, 'The root must be relative, without . and .. in it.', 'change_values'),
} as const

export const learningErrors = {
  learning_not_found: entry(404, 'There is no learning with this id that you can see.', 'check_id'),
  learning_not_editable: entry(409, 'The learning is reviewed already. File another one.', 'file_again'),
} as const

export const webhookErrors = {
  webhook_not_found: entry(404, 'There is no webhook with this id.', 'check_id'),
  webhook_delivery_not_found: entry(404, 'The webhook has no delivery with this id, or it is too old.', 'check_id'),
  webhook_url_refused: entry(400, 'Nothing is sent to this address.', 'fix_request'),
  webhook_disabled: entry(409, 'The webhook is disabled, so nothing is sent. Make it active again.', 'make_active'),
} as const

export const mailErrors = {
  mail_not_offered: entry(409, 'This server sends no mail: its operator has named no SMTP server.', 'ask_operator'),
  mail_not_sent: entry(502, 'The mail could not be sent.', 'ask_operator'),
} as const

export const skillErrors = {
  skill_not_found: entry(404, 'There is no such skill, or no such agent that you can see.', 'check_id'),
  ambiguous_skill_ref: entry(409, 'Several skills have this slug; `details.candidates` lists their ids.', 'use_id'),
  duplicate_skill_slug: entry(409, 'A skill of this workspace has this slug.', 'change_values'),
  invalid_skill_bundle: entry(400, 'The files are no bundle of a skill.', 'fix_request'),
  skill_replace_forbidden: entry(409, 'The skill belongs to a plugin: change that.'),
  skill_plugin_disabled: entry(409, 'The plugin of the skill is off. Turn that on first.'),
  builtin_skill_delete_forbidden: entry(409, 'The skill is built in. Turn it off instead.'),
  agent_skill_default_forbidden: entry(403, 'What an agent adds is off for the workspace; a person turns it on.'),
  skill_file_not_found: entry(404, 'The skill has no such file.', 'check_path'),
  skill_share_forbidden: entry(409, 'A skill of a plugin is not shared: share the plugin.'),
  share_not_found: entry(404, 'There is no such share link.', 'check_id'),
  share_gone: entry(410, 'The share link was revoked or has expired, or its skill is gone.', 'ask_person'),
  share_forbidden: entry(403, 'You call in another workspace than the one that is named.', 'switch_workspace'),
  invalid_skill_source: entry(400, 'The source is no git repository that this server asks.', 'fix_request'),
  skill_source_unreadable: entry(400, 'The repository could not be read.', 'fix_request'),
  no_skills_found: entry(404, 'The repository has no SKILL.md in the folders that were searched.', 'check_path'),
  skill_bundle_storage_failed: entry(503, 'The files could not be read or stored. Try again.', 'retry'),
} as const

export const connectionErrors = {
  integration_not_found: entry(404, 'The catalog has no such service.', 'check_id'),
  connection_not_found: entry(404, 'There is no connection with this id that you can see.', 'check_id'),
  connection_owner_mismatch: entry(403, 'Only a person connects to this service, or a workspace admin.', 'ask_person'),
  connection_not_reauthorizable: entry(409, 'The connection is active, or its sign-in is still open.'),
  connection_not_revokable: entry(400, 'The provider did not revoke the sign-in. Nothing was changed.', 'retry'),
  api_key_invalid: entry(400, 'A field of the key is missing, or does not have the form it must have.', 'fix_request'),
  oauth_exchange_failed: entry(400, 'The sign-in at the provider failed.', 'start_over'),
  unsupported_auth_kind: entry(400, 'The service did not take the credential.', 'fix_request'),
} as const

export const pluginErrors = {
  plugin_not_found: entry(404, 'There is no plugin with this id or name.', 'check_id'),
  duplicate_plugin_name: entry(409, 'The workspace has a plugin of this name. Update or remove it.', 'change_values'),
  invalid_plugin: entry(400, 'The files are no plugin.', 'fix_request'),
  invalid_plugin_source: entry(400, 'The source is no git repository that this server asks.', 'fix_request'),
  plugin_source_unreadable: entry(400, 'The repository could not be read.', 'fix_request'),
} as const

export const mcpErrors = {
  sandbox_not_found: entry(404, 'There is no sandbox with this id.', 'check_id'),
  sandbox_gone: entry(409, 'The sandbox is gone. What its run left is with the run.', 'refresh'),
  sandbox_engine_unavailable: entry(503, 'The engine of the sandboxes cannot be reached. Try again.', 'retry'),
  mcp_server_not_found: entry(404, 'There is no MCP server with this id that you can see.', 'check_id'),
  mcp_server_not_asked: entry(409, 'The server is reached from devices alone.'),
  mcp_values_of_runs: entry(403, 'The server is made of values that its runs alone have.', 'ask_person'),
  mcp_sign_in_needed: entry(409, 'The server refuses who is not signed in.', 'ask_person'),
  mcp_server_unreadable: entry(502, 'The server could not be asked, or its answer is none.', 'retry'),
  mcp_server_of_plugin: entry(409, 'The MCP server belongs to a plugin: change that.'),
} as const
