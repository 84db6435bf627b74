"""What `DistributedDataParallel` has itself, and what the base classes of model packages give to every model."""

from __future__ import annotations

# `dir()` of an object of torch.nn.parallel.DistributedDataParallel, its own fields included, torch 2.13; the names of
# nn.Module since 1.8 are among them. Names with an underscore in front are not listed: nobody is told of those.
_WRAPPER = (
    "T_destination add_module apply batched_grad_copy bfloat16 broadcast_bucket_size broadcast_buffers bucket_bytes_cap "
    "bucket_bytes_cap_default bucket_bytes_cap_list buffers call_super_init children compile cpu cuda device device_ids "
    "device_type dim double dump_patches eval extra_repr find_unused_parameters float forward forward_sync_buffers gather "
    "get_buffer get_extra_state get_parameter get_submodule gradient_as_bucket_view half ipu is_multi_device_module join "
    "join_device join_hook join_process_group load_state_dict logger mixed_precision module modules modules_buffers "
    "modules_params mtia named_buffers named_children named_module_buffers named_modules named_parameters no_sync "
    "output_device parameters parameters_to_ignore process_group reducer register_backward_hook register_buffer "
    "register_comm_hook register_forward_hook register_forward_pre_hook register_full_backward_hook "
    "register_full_backward_pre_hook register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module "
    "register_parameter register_state_dict_post_hook register_state_dict_pre_hook require_backward_grad_sync "
    "require_forward_param_sync requires_grad_ scatter set_extra_state set_submodule share_memory "
    "skip_all_reduce_unused_params state_dict static_graph to to_empty to_kwargs train training type "
    "use_side_stream_for_tensor_copies will_sync_module_buffers xpu zero_grad ddp_uneven_inputs_config ddp_join_enabled "
    "ddp_join_divide_by_initial_world_size ddp_join_throw_on_early_termination local_used_maps parameters_to_reduce"
)
# transformers 4.x PreTrainedModel and diffusers 0.2x/0.3x ModelMixin: on every model that `from_pretrained` makes.
_PRETRAINED = (
    "config generate save_pretrained push_to_hub resize_token_embeddings get_input_embeddings get_output_embeddings "
    "set_input_embeddings generation_config gradient_checkpointing_enable gradient_checkpointing_disable tie_weights dtype "
    "enable_input_require_grads add_adapter set_adapter enable_gradient_checkpointing disable_gradient_checkpointing "
    "enable_xformers_memory_efficient_attention is_gradient_checkpointing num_parameters base_model name_or_path "
    "attn_processors set_attn_processor"
)
PRETRAINED = frozenset(_PRETRAINED.split())
# Those of them that run no forward whose gradients a loss may need.
QUIET = frozenset(PRETRAINED - {"get_input_embeddings", "get_output_embeddings", "base_model"})
# What the engine of DeepSpeed has and a model seldom: a program that may run on either asks these of the engine.
_ENGINE = (
    "backward step save_checkpoint load_checkpoint save_16bit_model save_fp16_model get_global_grad_norm optimizer lr_scheduler "
    "is_gradient_accumulation_boundary gradient_accumulation_steps train_batch_size set_gradient_accumulation_boundary "
    "zero_optimization zero_optimization_stage cur_scale loss_scale global_steps global_rank local_rank world_size eval_batch "
    "train_batch bfloat16_enabled fp16_enabled get_lr data_parallel_group skipped_steps"
)
WRAPPER = frozenset(_WRAPPER.split())
ENGINE = frozenset(_ENGINE.split())
