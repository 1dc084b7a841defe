-- One row per required relation: whether it exists, what this role lacks on it, and the row security that applies.
-- The requirements come as one JSON array, so that all collectors cost one statement, asked of the catalogs alone.
WITH effective AS (
    SELECT coalesce(nullif($2, ''), current_schema()::text, 'public') AS schema_name
),
wanted AS (
    SELECT position,
           item,
           coalesce(item ->> 'schema', effective.schema_name) AS schema_name,
           item ->> 'relation' AS relation
      FROM effective,
           jsonb_array_elements($1::text::jsonb) WITH ORDINALITY AS items (item, position)
),
found AS (
    SELECT wanted.position, wanted.item, wanted.schema_name, namespace.oid AS schema_oid, class.oid, class.relkind::text
      FROM wanted
      LEFT JOIN pg_catalog.pg_namespace AS namespace ON namespace.nspname = wanted.schema_name
      LEFT JOIN pg_catalog.pg_class AS class
        ON class.relnamespace = namespace.oid
       AND class.relname = wanted.relation
       AND class.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
),
-- The join with pg_attribute keeps only columns that exist: has_column_privilege is an error for any other. System columns
-- count too: ctid has a privilege of its own, unless the whole table is granted.
asked AS (
    SELECT found.position, privilege, name, attribute.attnum,
           has_column_privilege(found.oid, attribute.attnum, privilege) AS granted
      FROM found
     CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE')) AS privileges (privilege)
     CROSS JOIN jsonb_array_elements_text(found.item -> lower(privilege)) AS names (name)
      LEFT JOIN pg_catalog.pg_attribute AS attribute
        ON attribute.attrelid = found.oid
       AND attribute.attname = name
       AND NOT attribute.attisdropped
)
SELECT found.schema_name,
       effective.schema_name AS effective_schema,
       current_user::text AS role_name,
       current_schema()::text AS connection_schema,
       found.schema_oid IS NOT NULL AS schema_exists,
       found.schema_oid IS NOT NULL AND has_schema_privilege(found.schema_oid, 'USAGE') AS schema_usable,
       found.oid IS NOT NULL AS relation_exists,
       ARRAY(SELECT DISTINCT name FROM asked WHERE asked.position = found.position AND attnum IS NULL ORDER BY name)
           AS absent_columns,
       coalesce((SELECT jsonb_agg(jsonb_build_array(privilege, name))
                   FROM asked
                  WHERE asked.position = found.position AND NOT granted), '[]')::text AS denied_columns,
       CASE WHEN found.oid IS NULL OR NOT (found.item ->> 'delete')::boolean THEN false
            ELSE NOT has_table_privilege(found.oid, 'DELETE') END AS delete_denied,
       CASE WHEN found.relkind IS DISTINCT FROM 'S' OR NOT (found.item ->> 'usage')::boolean THEN false
            ELSE NOT has_sequence_privilege(found.oid, 'USAGE') END AS usage_denied,
       found.oid IS NOT NULL AND row_security_active(found.oid) AS row_security,
       coalesce((SELECT jsonb_agg(jsonb_build_object(
                            'name', policy.polname,
                            'command', policy.polcmd::text,
                            'permissive', policy.polpermissive,
                            'condition', pg_get_expr(policy.polqual, policy.polrelid),
                            'check', pg_get_expr(policy.polwithcheck, policy.polrelid)) ORDER BY policy.polname)
                   FROM pg_catalog.pg_policy AS policy
                  WHERE policy.polrelid = found.oid
                    AND (0 = ANY (policy.polroles)
                         OR EXISTS (SELECT FROM unnest(policy.polroles) AS roles (member_of)
                                     WHERE member_of <> 0 AND pg_has_role(member_of, 'USAGE')))), '[]')::text
           AS policies
  FROM found, effective
 ORDER BY found.position
